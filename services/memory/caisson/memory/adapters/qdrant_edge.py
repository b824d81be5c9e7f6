"""The embedded index: the Qdrant engine in this process, over a folder that one process has open.

Search is exact: payload indexes narrow it to what the caller may see, and all of that is compared.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Self

import qdrant_edge as edge

from caisson.common.ids import TenantId
from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.qdrant_edge_engine import EdgeEngine
from caisson.memory.adapters.qdrant_edge_work import Offset, by_likeness, by_terms, scrolled, size, writes
from caisson.memory.adapters.restrictions import Restriction, chunks_of, held_of, older_chunks, visible
from caisson.memory.adapters.vectors import query_vector
from caisson.memory.domain.fusion import Leg, fuse
from caisson.memory.domain.indexing import Candidates, EmbedderIdentity, IndexQuery, Point
from caisson.memory.domain.principals import HardFilter

_STORED_POINTS = 500


class EdgeIndex:
    """The index in a folder of this host."""

    def __init__(self, engine: EdgeEngine, identity: EmbedderIdentity) -> None:
        self._engine = engine
        self._dimensions = identity.dimensions
        self._bm25 = Bm25()

    @classmethod
    async def open(cls, path: Path, identity: EmbedderIdentity, *, rebuild: bool = False) -> Self:
        """Open or create the index; `rebuild` discards what another embedder wrote.

        Raises:
            Misconfigured: when another process has it open, or another embedder wrote it.
        """
        return cls(await EdgeEngine.open(path, identity, rebuild=rebuild), identity)

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points after all were checked; chunks that an earlier version left are removed."""
        for operation in await self._engine.compute(writes, points, self._bm25, self._dimensions):
            await self._engine.write(operation)
        for restriction in older_chunks(points):
            await self._engine.remove(restriction)

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Remove every chunk of these memories; an empty list removes nothing."""
        for restriction in chunks_of(tenant, memory_ids):
            await self._engine.remove(restriction)

    async def search(self, query: IndexQuery, filter_: HardFilter) -> Candidates:
        """Search under the hard filter, which stands in every leg; the root is their fusion."""
        return await self._engine.read(_searched, query, visible(filter_), self._bm25, self._dimensions)

    async def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point."""
        for restriction in held_of(tenant, memory_ids):
            offset: Offset | None = None
            while True:
                page, offset = await self._engine.read(scrolled, restriction, offset, _STORED_POINTS)
                for found in page:
                    yield found
                if offset is None:
                    break

    async def count(self) -> int:
        """Return the number of points."""
        return await self._engine.read(size)

    async def optimize(self) -> None:
        """Flush, and drop what deletions left behind; searches and writes go on meanwhile."""
        await self._engine.optimize()

    async def check(self) -> None:
        """Raise Unavailable unless the engine answers now."""
        await self.count()

    async def close(self) -> None:
        """Flush, and let another process have the folder."""
        await self._engine.close()


def _searched(
    shard: edge.EdgeShard, query: IndexQuery, restriction: Restriction, bm25: Bm25, dimensions: int
) -> Candidates:
    dense = lexical = None
    vector = query_vector(query, dimensions)
    terms = bm25.query(query.text or "")
    if vector is not None:
        dense = Leg(best=by_likeness(shard, vector, restriction, query.limit), weight=query.dense_weight)
    if terms.indices:
        lexical = Leg(best=by_terms(shard, terms, restriction, query.limit), weight=query.sparse_weight)
    return fuse(dense, lexical, sparse_terms=len(terms.indices))
