"""What is done with a shard of the embedded engine. Everything here blocks.

The engine keeps the interpreter while it writes and flushes, and for most of a search: writes come in pages.
"""

from collections.abc import Callable, Sequence

import qdrant_edge as edge

from caisson.memory.adapters.bm25 import Bm25, Sparse
from caisson.memory.adapters.point_payload import Field
from caisson.memory.adapters.qdrant_edge.requests import dense_leg, filter_of, lexical_leg, point_of, upserting
from caisson.memory.adapters.qdrant_edge.wire import PAGE_POINTS, Found, Offset
from caisson.memory.adapters.restrictions import Restriction
from caisson.memory.domain.fusion import best_of_each, wider
from caisson.memory.domain.indexing import Point


def writes(points: Sequence[Point], bm25: Bm25) -> list[edge.UpdateOperation]:
    """Return the operations that write the points, each of one version."""
    by_version: dict[int, list[edge.Point]] = {}
    for point in points:
        made = point_of(point, list(point.dense), bm25.document(point.text))
        by_version.setdefault(point.version, []).append(made)
    return [upserting(made, version) for version, made in sorted(by_version.items())]


def remove(shard: edge.EdgeShard, restriction: Restriction) -> None:
    """Delete what a restriction selects."""
    shard.update(edge.UpdateOperation.delete_points_by_filter(filter_of(restriction)))


def size(shard: edge.EdgeShard, restriction: Restriction | None = None) -> int:
    """Return the number of points, or of those that a restriction selects."""
    if restriction is None:
        return shard.info().points_count
    return shard.count(edge.CountRequest(exact=True, filter=filter_of(restriction)))


def by_likeness(shard: edge.EdgeShard, vector: list[float], restriction: Restriction, limit: int) -> Found:
    """Return the best cosine of each memory found, best first."""
    return _collapsed(shard, limit, lambda asked: dense_leg(vector, restriction, asked))


def by_terms(shard: edge.EdgeShard, terms: Sparse, restriction: Restriction, limit: int) -> Found:
    """Return the best BM25 score of each memory found, best first."""
    return _collapsed(shard, limit, lambda asked: lexical_leg(terms, restriction, asked))


def scrolled(
    shard: edge.EdgeShard, restriction: Restriction | None, offset: Offset | None, limit: int
) -> tuple[list[tuple[str, str, int]], Offset | None]:
    """Return (tenant, memory id, version) of a page of points, and where the next page begins."""
    told = [Field.TENANT.value, Field.MEMORY.value, Field.VERSION.value]
    filter_ = filter_of(restriction) if restriction else None
    records, following = shard.scroll(
        edge.ScrollRequest(offset=offset, limit=limit, filter=filter_, with_payload=told)
    )
    payloads = [record.payload or {} for record in records]
    return [(found[told[0]], found[told[1]], found[told[2]]) for found in payloads], following


def copied(source: edge.EdgeShard, target: edge.EdgeShard, offset: Offset | None) -> Offset | None:
    """Copy a page of points; return where the next page begins, None after the last."""
    records, following = source.scroll(
        edge.ScrollRequest(offset=offset, limit=PAGE_POINTS, with_payload=True, with_vector=True)
    )
    points = [edge.Point(record.id, record.vector or {}, record.payload) for record in records]
    if points:
        target.update(edge.UpdateOperation.upsert_points(points))
    return following


def _collapsed(shard: edge.EdgeShard, limit: int, request: Callable[[int], edge.QueryRequest]) -> Found:
    asked: int | None = limit
    found: Found = {}
    while asked is not None:
        hits = shard.query(request(asked))
        found = best_of_each((_memory(hit), hit.score) for hit in hits)
        asked = wider(limit=limit, asked=asked, chunks=len(hits), memories=len(found))
    return dict(list(found.items())[:limit])


def _memory(hit: edge.ScoredPoint) -> str:
    memory_id: str = (hit.payload or {})[Field.MEMORY.value]
    return memory_id
