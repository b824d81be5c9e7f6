"""Where the index differs from the store, a page at a time. Invariant: memory is bounded by a page, not by a tenant.

Store and index are read one after the other while both change: only what differs in the same way twice does. Nothing
is deleted from here, because a memory may come back meanwhile; the relay takes each memory's turn.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from caisson.common.ids import TenantId
from caisson.memory.domain.leasing import Lease

PAGE_MEMORIES = 200
PAGE_POINTS = 1_000

Placed = tuple[TenantId, str]
"""A memory of a tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the index must hold of a memory: so many points, each of this version."""

    version: int
    points: int


class Inventory(Protocol):
    """What the index should hold, by the store."""

    async def next_tenant(self, after: str) -> TenantId | None:
        """Return the next tenant, in a fixed order, that ever remembered anything."""

    async def page(self, tenant: TenantId, after: str, limit: int) -> list[str]:
        """Return the next memories, in a fixed order, that the index should hold something of."""

    async def wanted(self, tenant: TenantId, memory_ids: Sequence[str]) -> dict[str, Wanted | None]:
        """Return, of one moment, what the index must hold of these; None where that waits in the outbox."""

    async def unknown(self, memories: Sequence[Placed]) -> list[Placed]:
        """Return those of which the index must hold nothing, but for what waits in the outbox."""

    async def enqueue(self, tenant: TenantId, held: Mapping[str, int], *, lease: Lease | None = None) -> None:
        """Have these memories indexed again, of which the index holds so many points now; may raise LeaseLost."""


class StoredPoints(Protocol):
    """What the index holds."""

    def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point: of all tenants or one, of all or these memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the index must hold of a memory, and the versions of the points that it holds."""

    wanted: Wanted | None
    held: tuple[int, ...]

    @property
    def kind(self) -> str:
        """`missing`: nothing is held; `orphaned`: nothing must be; `stale`: another version, too few or too many."""
        if self.wanted is None:
            return "orphaned"
        return "stale" if self.held else "missing"


@dataclass(kw_only=True)
class Drift:
    """How many memories were compared, and how many differed, by kind."""

    checked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Drift") -> None:
        """Add what another page had."""
        self.checked += other.checked
        self.kinds += other.kinds


def compare(wanted: Mapping[str, Wanted | None], points: Iterable[tuple[str, int]]) -> dict[str, Difference]:
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
    return differing


class Reconciler:
    """Compares both ways: from the store what the index lacks, from the index what the store does not know."""

    def __init__(self, inventory: Inventory, index: StoredPoints) -> None:
        self._inventory = inventory
        self._index = index

    async def next_tenant(self, after: str) -> TenantId | None:
        """Return the next tenant of the store."""
        return await self._inventory.next_tenant(after)

    async def tenant(
        self, tenant: TenantId, *, after: str = "", lease: Lease | None = None
    ) -> AsyncIterator[tuple[str, Drift]]:
        """Compare what the store has of a tenant; yield after each page its last memory and what was mended."""
        while page := await self._inventory.page(tenant, after, PAGE_MEMORIES):
            after = page[-1]
            yield after, await self._mend(tenant, page, lease)

    async def strangers(self, tenant: TenantId | None = None, *, lease: Lease | None = None) -> AsyncIterator[Drift]:
        """Compare what the index has of one tenant or of all; yield after each page what was mended."""
        page: dict[Placed, None] = {}
        points = 0
        async for found, memory_id, _ in self._index.stored(tenant):
            page[TenantId(found), memory_id] = None
            points += 1
            if points == PAGE_POINTS:
                yield await self._remove(page, lease)
                page, points = {}, 0
        yield await self._remove(page, lease)

    async def _remove(self, page: Collection[Placed], lease: Lease | None) -> Drift:
        by_tenant: dict[TenantId, list[str]] = defaultdict(list)
        for tenant, memory_id in await self._inventory.unknown(list(page)):
            by_tenant[tenant].append(memory_id)
        drift = Drift()
        for tenant, memory_ids in by_tenant.items():
            drift.kinds += (await self._mend(tenant, memory_ids, lease)).kinds
        return drift

    async def _mend(self, tenant: TenantId, memory_ids: Sequence[str], lease: Lease | None) -> Drift:
        wanted, differing = await self._look(tenant, memory_ids)
        if differing:
            _, again = await self._look(tenant, sorted(differing))
            differing = {id_: found for id_, found in differing.items() if again.get(id_) == found}
        if differing:
            held = {id_: len(found.held) for id_, found in differing.items()}
            await self._inventory.enqueue(tenant, held, lease=lease)
        return Drift(
            checked=sum(must is not None for must in wanted.values()),
            kinds=Counter(found.kind for found in differing.values()),
        )

    async def _look(
        self, tenant: TenantId, memory_ids: Sequence[str]
    ) -> tuple[Mapping[str, Wanted | None], dict[str, Difference]]:
        points = [(id_, version) async for _, id_, version in self._index.stored(tenant, memory_ids)]
        wanted = await self._inventory.wanted(tenant, memory_ids)
        return wanted, compare(wanted, points)
