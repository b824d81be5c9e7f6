"""Idempotency keys: what a POST with a key may do. Invariant: one key, one effect, one answer."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from caisson.common.errors import Conflict, InvalidInput
from caisson.gateway.domain.principals import Principal

MAX_KEY_CHARS = 255
LOCK_S = 30.0


class KeyReused(InvalidInput):
    """The key came with another body or path before."""

    code = "idempotency_key_reused"


class InProgress(Conflict):
    """The first request with this key has not been answered yet."""

    code = "idempotency_in_progress"
    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """This request is the one that acts. `object_id` is what it shall name the object it makes."""

    object_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The answer that was given."""

    status: int
    headers: dict[str, str]
    body: bytes


class IdempotencyStore(Protocol):
    """Where keys are remembered."""

    async def reserve(self, scope: str, key: str, *, fingerprint: bytes, object_id: str) -> Reserved | Stored:
        """Take the key or return the stored answer; raise KeyReused or InProgress."""

    async def store(self, scope: str, key: str, answer: Stored) -> None:
        """Remember the answer."""

    async def forget(self, scope: str, key: str) -> None:
        """Give the key back: its request was refused and had no effect."""

    async def unlock(self, scope: str, key: str) -> None:
        """Let a repeat act with the same object id: whether the request had an effect is unknown."""


def scope_of(principal: Principal) -> str:
    """Return within what a key is one key: an API key, acting for one tenant and user.

    What another user of the tenant did with a key is not told, not even that it was used. Ids hold no line end.
    """
    return "\n".join((principal.key.key_id, principal.tenant or "", principal.user or ""))


def check_key(key: str) -> str:
    """Return the key: 1 to 255 visible ASCII characters."""
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        raise InvalidInput(f"1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key")
    return key


def fingerprint(*parts: bytes) -> bytes:
    """Return a digest of what must be the same in a repeated request: method, path, granted scopes, body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
