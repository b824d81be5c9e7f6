"""What keeps the store and the index tidy, and finds where they differ."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from caisson.common.errors import Misconfigured
from caisson.common.ids import TenantId
from caisson.memory.domain.indexing import EmbedderIdentity


class Housekeeping(Protocol):
    """Tidying a page at a time."""

    async def drop_expired(self) -> int:
        """Delete some expired memories; return how many."""

    async def count_uses(self) -> None:
        """Note the time of use of what recalls returned."""

    async def cool_unused(self) -> int:
        """Let some long unused memories go cold; return how many."""

    async def drop_old_records(self) -> None:
        """Delete old recalls, receipts and unfinished jobs."""


class Inventory(Protocol):
    """What the index should hold, by the store."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that ever remembered anything."""

    async def indexable(self, tenant: TenantId) -> dict[str, int]:
        """Return the version of each memory that the index should hold, but for what waits in the outbox."""

    async def waiting(self, tenant: TenantId, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the memories that wait in the outbox."""

    async def enqueue(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Have these memories indexed again."""


class StoredPoints(Protocol):
    """What the index holds."""

    def stored(self, tenant: TenantId | None = None) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every indexed memory."""

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Remove every chunk of these memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Where store and index differ: not in the index, only in the index, at another version."""

    checked: int
    missing: frozenset[str]
    orphaned: frozenset[str]
    stale: frozenset[str]


def compare(wanted: Mapping[str, int], stored: Iterable[tuple[str, int]]) -> Drift:
    """Hold the index's memories against those that it should hold."""
    held = dict(stored)
    return Drift(
        checked=len(wanted),
        missing=frozenset(wanted.keys() - held.keys()),
        orphaned=frozenset(held.keys() - wanted.keys()),
        stale=frozenset(id_ for id_ in wanted.keys() & held.keys() if wanted[id_] != held[id_]),
    )


async def reconcile(tenant: TenantId, inventory: Inventory, index: StoredPoints) -> Drift:
    """Find where a tenant's index differs from the store: orphans go now, the rest is left to the relay."""
    held = [(memory_id, version) async for _, memory_id, version in index.stored(tenant)]
    drift = compare(await inventory.indexable(tenant), held)
    waiting = await inventory.waiting(tenant, sorted(drift.orphaned))
    drift = Drift(checked=drift.checked, missing=drift.missing, orphaned=drift.orphaned - waiting, stale=drift.stale)
    if drift.orphaned:
        await index.delete_memories(tenant, sorted(drift.orphaned))
    if mend := drift.missing | drift.stale:
        await inventory.enqueue(tenant, sorted(mend))
    return drift


class Embeddings(Protocol):
    """Which embedder the index was made with."""

    async def embedding(self) -> EmbedderIdentity | None:
        """Return what the index was made with; None where there is none yet."""

    async def embed_with(self, identity: EmbedderIdentity) -> None:
        """From now on this embedder is the index's; every memory made with another waits in the outbox."""


async def refuse_other_embedder(embeddings: Embeddings, configured: EmbedderIdentity) -> None:
    """Hold the configured embedder against the index's.

    Raises:
        Misconfigured: naming both, where they differ.
    """
    known = await embeddings.embedding()
    if known not in {None, configured}:
        raise Misconfigured(
            f"the index was made with {_told(known)}, configured is {_told(configured)}; "
            "start once with --reembed to embed every memory again"
        )


def _told(identity: EmbedderIdentity | None) -> str:
    if identity is None:
        return "none"
    return f"{identity.name} ({identity.dimensions} dimensions, {identity.digest})"
