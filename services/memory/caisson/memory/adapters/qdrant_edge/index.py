"""The domain's `Index` over the embedded engine. Search is exact, and the event loop waits for none of it.

Payload indexes narrow a search to what the caller may see, and all of that is compared.
"""

import asyncio
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import structlog

from caisson.common.ids import TenantId
from caisson.memory.adapters.qdrant_edge.process import EdgeProcess
from caisson.memory.adapters.qdrant_edge.wire import PAGE_POINTS, Offset
from caisson.memory.adapters.restrictions import chunks_of, held_of, older_chunks, visible
from caisson.memory.adapters.vectors import query_vector, unit
from caisson.memory.domain.fusion import Leg, fuse
from caisson.memory.domain.indexing import Candidates, EmbedderIdentity, IndexQuery, Point
from caisson.memory.domain.principals import HardFilter

log = structlog.get_logger(__name__)

ERASE_WITHIN_S: Final = 3_600.0
_STORED_POINTS: Final = 500


class EdgeIndex:
    """The index in a folder of this host."""

    def __init__(self, engine: EdgeProcess, identity: EmbedderIdentity) -> None:
        self._engine = engine
        self._dimensions = identity.dimensions

    @classmethod
    async def open(
        cls,
        path: Path,
        identity: EmbedderIdentity,
        *,
        rebuild: bool = False,
        erase_within_s: float = ERASE_WITHIN_S,
    ) -> Self:
        """Open or create the index; `rebuild` discards what another embedder wrote.

        Raises:
            Misconfigured: when another process has it open, or another embedder wrote it.
        """
        engine = await EdgeProcess.open(path, identity, rebuild=rebuild, erase_within_s=erase_within_s)
        return cls(engine, identity)

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points after all were checked; chunks that an earlier version left are removed."""
        for page in await asyncio.to_thread(lambda: list(_pages(points, self._dimensions))):
            await self._engine.call("write", page)
        for restriction in older_chunks(points):
            await self._engine.call("remove", restriction)

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Remove every chunk of these memories; an empty list removes nothing."""
        for restriction in chunks_of(tenant, memory_ids):
            await self._engine.call("remove", restriction)

    async def search(self, query: IndexQuery, filter_: HardFilter) -> Candidates:
        """Search under the hard filter, which stands in every leg; the root is their fusion."""
        vector = query_vector(query, self._dimensions)
        dense = None if vector is None else array("f", vector)
        asked = (dense, query.text, visible(filter_), query.limit)
        likely, lexical, terms = await self._engine.call("search", *asked)
        return fuse(
            None if likely is None else Leg(best=likely, weight=query.dense_weight),
            None if lexical is None else Leg(best=lexical, weight=query.sparse_weight),
            sparse_terms=terms,
        )

    async def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point."""
        for restriction in held_of(tenant, memory_ids):
            offset: Offset | None = None
            while True:
                page, offset = await self._engine.call("stored", restriction, offset, _STORED_POINTS)
                for found in page:
                    yield found
                if offset is None:
                    break

    async def count(self) -> int:
        """Return the number of points."""
        points: int = await self._engine.call("size")
        return points

    async def optimize(self) -> None:
        """Flush; when it is time, pack what was written and drop from the files what was deleted.

        Searches and writes go on meanwhile.
        """
        if not await self._engine.call("optimize", within_s=None):
            log.warning("embedded_index.not_packed")

    async def drop_older(self) -> None:
        """Do nothing: a folder holds the points of one embedder."""

    async def check(self) -> None:
        """Raise Unavailable unless the engine answers now."""
        await self.count()

    async def close(self) -> None:
        """Flush, and let another process have the folder."""
        await self._engine.close()


def _pages(points: Sequence[Point], dimensions: int) -> Iterator[list[Point]]:
    """Check all points, then yield them in pages, their vectors at length 1 in the engine's precision."""
    vectors = unit([point.dense for point in points], dimensions)
    for at in range(0, len(points), PAGE_POINTS):
        page = zip(points[at : at + PAGE_POINTS], vectors[at : at + PAGE_POINTS], strict=True)
        yield [replace(point, dense=array("f", vector)) for point, vector in page]
