"""From SQL to the index: work that is leased, done outside any transaction, and done again after a crash."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from caisson.common.envelope import Envelope
from caisson.common.ids import TenantId
from caisson.memory.domain.layers import Layer

MAX_DELAY_S = 300.0
HOPELESS_ATTEMPTS = 8
"""Work that failed so often is one memory's trouble."""

_FIRST_DELAY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexable:
    """A memory as the index must show it. `chunks` is how many points the index held of it before."""

    version: int
    text: str
    scopes: frozenset[str]
    layer: Layer
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A memory whose points may differ from its row, held by a lease; `memory` None means that no points belong."""

    tenant: TenantId
    memory_id: str
    generation: int
    lease: int
    attempts: int
    memory: Indexable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Work whose points are written; `chunks` is how many."""

    due: Due
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How far a relay is behind. `failing` is what it tried in vain many times; the oldest is of the others."""

    waiting: int
    oldest_s: float
    failing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """What a round did, and whether another should follow at once."""

    done: int
    more: bool


class Size(StrEnum):
    """How long texts are: of long ones, each takes seconds."""

    BRIEF = "brief"
    LONG = "long"


class IndexOutbox(Protocol):
    """The index outbox of the store."""

    async def lease(self, size: Size, *, limit: int, after: str) -> list[Due]:
        """Take due work that nobody holds, of each tenant the oldest, tenants in turn and from the one after `after`.

        Brief texts come up to so many bytes in sum; the last that is taken had the last turn.
        """

    async def lease_these(
        self, tenant: TenantId, memory_ids: Sequence[str], *, size: Size | None = None
    ) -> list[Due]:
        """Take the work about these memories that nobody holds; of one size alone, or of both."""

    async def keep(self, dues: Sequence[Due]) -> set[int]:
        """Hold on to work and return the leases that are still held: nothing of the others may be written."""

    async def waiting(self, tenant: TenantId, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the memories that wait."""

    async def unremoved(self, tenant: TenantId) -> list[str]:
        """Return the deleted memories of a tenant whose points may still be there."""

    async def settle(self, done: Sequence[Done]) -> None:
        """Take work off; what changed meanwhile stays and is due at once."""

    async def postpone(self, dues: Sequence[Due], *, error: str) -> None:
        """Give work back for later; `error` holds no text of a memory."""

    async def settle_deleted(self, tenant: TenantId, memory_ids: Sequence[str]) -> int:
        """Take work about deleted memories off; return how much of it a relay still holds."""

    async def backlog(self) -> Backlog:
        """Return how much waits, and how long the oldest has."""


class Indexing(Protocol):
    """Keeping the index up with the store."""

    async def catch_up(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Index these memories now if that is quick and the index is up; otherwise the relay does it later."""

    async def replace(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Have the index show these memories' newest version and nothing older; whether that is certain."""

    async def remove(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Remove deleted memories from index and caches; whether that is certain to have been the last of them."""

    async def unremoved(self, tenant: TenantId) -> list[str]:
        """Return the deleted memories of a tenant whose points may still be there."""

    async def is_done(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Whether the index shows these memories as the store does, or not at all where they are deleted."""


def delay_s(attempts: int) -> float:
    """Return how long work waits after so many attempts: doubling from half a second to five minutes."""
    return min(MAX_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(attempts - 1, 16))


class HeldFacts(Protocol):
    """Facts that no other relay holds."""

    facts: list[Envelope]

    @property
    def is_full(self) -> bool:
        """Whether there may be more than this."""

    async def mark_sent(self, facts: Sequence[Envelope]) -> None:
        """Drop facts that were acknowledged."""


class FactOutbox(Protocol):
    """Facts for the bus that were not acknowledged yet."""

    def batch(self) -> AbstractAsyncContextManager[HeldFacts]:
        """Hold the oldest unsent facts while they are published."""

    async def backlog(self) -> Backlog:
        """Return how many facts are unsent and how old the oldest is."""
