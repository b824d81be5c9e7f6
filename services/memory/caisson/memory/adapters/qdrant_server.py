"""The index in a Qdrant server: one collection for each embedder, shared by any number of replicas.

Invariant: the collection's metadata names the embedder that wrote it, and no other one opens it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Self

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

from caisson.common.errors import Unavailable
from caisson.common.ids import TenantId
from caisson.memory.adapters import qdrant_server_requests as requests
from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.point_payload import Field
from caisson.memory.adapters.qdrant_server_collections import Collections, open_collections
from caisson.memory.adapters.restrictions import Restriction, chunks_of, held_of, older_chunks, visible
from caisson.memory.adapters.vectors import query_vector, unit
from caisson.memory.domain.fusion import Leg, best_of_each, fuse, wider
from caisson.memory.domain.indexing import Candidates, EmbedderIdentity, IndexQuery, Point
from caisson.memory.domain.principals import HardFilter

_LegRequest = Callable[[int], models.QueryRequest]

_WRITTEN_POINTS = 256
_STORED_POINTS = 1_000


class ServerIndex:
    """One embedder's collection."""

    def __init__(self, client: AsyncQdrantClient, collections: Collections, identity: EmbedderIdentity) -> None:
        self._client = client
        self._collection = collections.own
        self._older = set(collections.older)
        self._dimensions = identity.dimensions
        self._bm25 = Bm25()

    @classmethod
    async def open(cls, client: AsyncQdrantClient, identity: EmbedderIdentity, *, rebuild: bool = False) -> Self:
        """Open or create the embedder's collection; `rebuild` lets it begin beside those of others.

        Raises:
            Misconfigured: when only other embedders wrote what is there.
            Unavailable: when the server does not answer.
        """
        with _translated():
            return cls(client, await open_collections(client, identity, rebuild=rebuild), identity)

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points after all were checked; chunks that an earlier version left are removed."""
        for version, made in (await asyncio.to_thread(self._made, points)).items():
            for at in range(0, len(made), _WRITTEN_POINTS):
                with _translated():
                    await self._client.upsert(
                        self._collection,
                        made[at : at + _WRITTEN_POINTS],
                        wait=True,
                        update_filter=requests.not_newer(version),
                    )
        await self._remove(older_chunks(points))

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Remove every chunk of these memories; an empty list removes nothing."""
        await self._remove(chunks_of(tenant, memory_ids))

    async def search(self, query: IndexQuery, filter_: HardFilter) -> Candidates:
        """Search under the hard filter, which stands in every leg; the root is their fusion."""
        vector, terms = query_vector(query, self._dimensions), self._bm25.query(query.text or "")
        restriction = visible(filter_)
        dense = partial(requests.dense_leg, vector, restriction) if vector else None
        lexical = partial(requests.lexical_leg, terms, restriction) if terms.indices else None
        legs = await asyncio.gather(
            self._leg(dense, query.limit, query.dense_weight), self._leg(lexical, query.limit, query.sparse_weight)
        )
        return fuse(*legs, sparse_terms=len(terms.indices))

    async def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point."""
        told = [Field.TENANT.value, Field.MEMORY.value, Field.VERSION.value]
        for restriction in held_of(tenant, memory_ids):
            filter_ = None if restriction is None else requests.filter_of(restriction)
            offset: models.ExtendedPointId | None = None
            while True:
                with _translated():
                    page, offset = await self._client.scroll(
                        self._collection, filter_, limit=_STORED_POINTS, offset=offset, with_payload=told
                    )
                for payload in (record.payload or {} for record in page):
                    yield payload[told[0]], payload[told[1]], payload[told[2]]
                if offset is None:
                    break

    async def count(self) -> int:
        """Return the number of points."""
        with _translated():
            return (await self._client.count(self._collection, exact=True)).count

    async def optimize(self) -> None:
        """Do nothing: the server optimizes by itself."""

    async def drop_older(self) -> None:
        """Remove the collections of other embedders that were there when this one was opened."""
        with _translated():
            for collection in tuple(self._older):
                await self._client.delete_collection(collection)
                self._older.discard(collection)

    async def check(self) -> None:
        """Raise Unavailable unless the server answers and has the collection."""
        with _translated():
            if not await self._client.collection_exists(self._collection):
                raise Unavailable(f"the Qdrant server has no collection {self._collection}")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _made(self, points: Sequence[Point]) -> dict[int, list[models.PointStruct]]:
        dense = unit([point.dense for point in points], self._dimensions)
        made: dict[int, list[models.PointStruct]] = {}
        for point, vector in zip(points, dense, strict=True):
            lexical = self._bm25.document(point.text)
            made.setdefault(point.version, []).append(requests.point_of(point, vector, lexical))
        return dict(sorted(made.items()))

    async def _leg(self, request: _LegRequest | None, limit: int, weight: float) -> Leg | None:
        if request is None:
            return None
        asked: int | None = limit
        best: dict[str, float] = {}
        while asked is not None:
            with _translated():
                (answer,) = await self._client.query_batch_points(self._collection, [request(asked)])
            best = best_of_each((_memory(hit), hit.score) for hit in answer.points)
            asked = wider(limit=limit, asked=asked, chunks=len(answer.points), memories=len(best))
        return Leg(best=dict(list(best.items())[:limit]), weight=weight)

    async def _remove(self, restrictions: Iterator[Restriction]) -> None:
        """Remove points, also those that other embedders wrote: what is forgotten is kept nowhere."""
        for restriction in restrictions:
            selector = models.FilterSelector(filter=requests.filter_of(restriction))
            with _translated():
                await self._client.delete(self._collection, selector, wait=True)
                for collection in tuple(self._older):
                    await self._remove_older(collection, selector)

    async def _remove_older(self, collection: str, selector: models.FilterSelector) -> None:
        if await self._client.collection_exists(collection):
            await self._client.delete(collection, selector, wait=True)
        else:
            self._older.discard(collection)


def _memory(hit: models.ScoredPoint) -> str:
    memory_id: str = (hit.payload or {})[Field.MEMORY.value]
    return memory_id


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ApiException, QdrantException) as error:
        raise Unavailable(f"the Qdrant server failed: {error}") from error
