"""What makes two texts, two facts, or two sets of scopes the same. Normalising merges nothing that differs."""

import hashlib
import unicodedata
from collections.abc import Iterable
from uuid import UUID, uuid5

from caisson.common.ids import TenantId
from caisson.memory.domain.normal_forms import normal

_EXTERNAL_IDS = UUID("0d4a9b7a-6c55-5a0e-8d5c-2f2f6f5f7c31")


def normalise(text: str) -> str:
    """Return a text in NFC, case-folded, without format characters, with single spaces."""
    kept = "".join(char for char in normal("NFC", text) if unicodedata.category(char) != "Cf")
    return " ".join(kept.casefold().split())


def content_hash(tenant: TenantId, text: str) -> bytes:
    """Return SHA-256 of tenant and normalised text: hashes of two tenants never compare equal."""
    return _digest((tenant, normalise(text)))


def fact_key(subject: str | None, attribute: str | None) -> bytes | None:
    """Return what identifies a fact that can be superseded; None without both subject and attribute."""
    if subject is None or attribute is None:
        return None
    return _digest((normalise(subject), normalise(attribute)))


def scope_key(scopes: Iterable[str]) -> bytes:
    """Return what identifies a set of scopes."""
    return _digest(sorted(set(scopes)))


def context_key(
    layer: str, *, fact: bytes | None, outcome: str | None, run: str | None, session: str | None
) -> bytes:
    """Return what tells two memories of one text apart: another fact, an episode of another run, another session."""
    return _digest(
        (
            fact.hex() if fact else "",
            f"{normalise(outcome or '')}\n{run}" if layer == "episodic" else "",
            session or "" if layer == "session" else "",
        )
    )


def external_memory_id(tenant: TenantId, owner_scope: str, external_id: str) -> str:
    """Return the stable id of a product's own id: UUIDv5 of tenant, owner and id.

    The owner is part of it: two users of a tenant may both call something `profile`.
    """
    return str(uuid5(_EXTERNAL_IDS, _joined((tenant, owner_scope, external_id))))


def _digest(parts: Iterable[str]) -> bytes:
    return hashlib.sha256(_joined(parts).encode()).digest()


def _joined(parts: Iterable[str]) -> str:
    """Join with lengths, so that no two lists of parts meet."""
    return "".join(f"{len(part)}:{part}" for part in parts)
