"""What keeps the store and the index tidy, and finds where they differ."""

from collections.abc import AsyncIterator, Iterable, Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the index must hold of a memory: so many points, each of this version."""

    version: int
    points: int


class Inventory(Protocol):
    """What the index should hold, by the store."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that ever remembered anything."""

    async def wanted(self, tenant: TenantId) -> dict[str, Wanted | None]:
        """Return, of one moment, what the index must hold of each memory; None where that waits in the outbox."""

    async def enqueue(self, tenant: TenantId, held: Mapping[str, int]) -> None:
        """Have these memories indexed again, of which the index holds so many points now."""


class StoredPoints(Protocol):
    """What the index holds."""

    def stored(self, tenant: TenantId | None = None) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the index must hold of a memory, and the versions of the points that it holds."""

    wanted: Wanted | None
    held: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Where store and index differ, by memory."""

    checked: int
    differing: Mapping[str, Difference]

    @property
    def missing(self) -> frozenset[str]:
        """Memories of which the index holds nothing."""
        return frozenset(id_ for id_, found in self.differing.items() if not found.held)

    @property
    def orphaned(self) -> frozenset[str]:
        """Memories of which it must hold nothing."""
        return frozenset(id_ for id_, found in self.differing.items() if found.wanted is None)

    @property
    def stale(self) -> frozenset[str]:
        """Memories of which it holds another version, or too few or too many points."""
        return frozenset(self.differing) - self.missing - self.orphaned


def compare(wanted: Mapping[str, Wanted | None], points: Iterable[tuple[str, int]]) -> Drift:
    """Hold the index's points (memory id, version) against what the index must hold; what waits may be anything."""
    held: dict[str, list[int]] = {id_: [] for id_ in wanted}
    for memory_id, version in points:
        held.setdefault(memory_id, []).append(version)
    differing = {}
    for memory_id, versions in held.items():
        must = wanted.get(memory_id)
        is_waiting = must is None and memory_id in wanted
        if not is_waiting and versions != ([must.version] * must.points if must else []):
            differing[memory_id] = Difference(wanted=must, held=tuple(sorted(versions)))
    return Drift(checked=sum(must is not None for must in wanted.values()), differing=differing)


async def reconcile(tenant: TenantId, inventory: Inventory, index: StoredPoints) -> Drift:
    """Find where a tenant's index differs from the store, and leave what does to the relay.

    Store and index are read one after the other while both change: only what differs in the same way twice does.
    Nothing is deleted from here, because a memory may come back meanwhile; the relay takes each memory's turn.
    """
    drift = await _look(tenant, inventory, index)
    if drift.differing:
        again = await _look(tenant, inventory, index)
        same = {id_: found for id_, found in drift.differing.items() if again.differing.get(id_) == found}
        drift = Drift(checked=again.checked, differing=same)
    if drift.differing:
        await inventory.enqueue(tenant, {id_: len(found.held) for id_, found in drift.differing.items()})
    return drift


async def _look(tenant: TenantId, inventory: Inventory, index: StoredPoints) -> Drift:
    points = [(memory_id, version) async for _, memory_id, version in index.stored(tenant)]
    return compare(await inventory.wanted(tenant), points)


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
