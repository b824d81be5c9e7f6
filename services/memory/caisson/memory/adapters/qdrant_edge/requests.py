"""Our points, restrictions and legs in the embedded engine's words. Invariant: whatever ranks is restricted."""

from typing import assert_never

import qdrant_edge as edge

from caisson.memory.adapters.bm25 import Sparse
from caisson.memory.adapters.point_payload import DENSE, KEYWORDS, LEXICAL, TIMES, Field, payload_of, timestamp
from caisson.memory.adapters.restrictions import After, AnyOf, Below, Condition, NotAfter, Restriction
from caisson.memory.domain.indexing import Point

_TOLD = [Field.MEMORY.value]
_SEARCH_THREADS = 1
"""A shard has a segment or two, which one thread searches; the others would only be woken."""
_PACKED_KB = 1
_NO_GRAPH = 16
_RESIDENT = edge.Memory.Cached


def configuration(dimensions: int, *, is_packed: bool = False) -> edge.EdgeConfig:
    """Return the shard's configuration; half precision costs 1e-4 of a cosine and saves half of the vectors.

    A packed segment has a graph without edges, because every search is exact. Any size can be packed. What is stored
    beside the vectors is read ahead where a shard is packed: one that is not reserves 32 MiB for it, mostly unused.
    """
    dense = edge.EdgeVectorParams(
        size=dimensions, distance=edge.Distance.Cosine, datatype=edge.VectorStorageDatatype.Float16
    )
    lexical = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
    return edge.EdgeConfig(
        vectors={DENSE: dense},
        sparse_vectors={LEXICAL: lexical},
        hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=_NO_GRAPH, full_scan_threshold=_NO_GRAPH),
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_PACKED_KB),
        payload_memory=_RESIDENT if is_packed else edge.Memory.Cold,
        max_search_threads=_SEARCH_THREADS,
    )


def payload_indexes() -> list[edge.UpdateOperation]:
    """Return what makes the fields of the hard filter fast; to be applied before any point is stored.

    They are mapped from their files and read ahead when a shard is opened: as fast as in memory of their own, in half
    the time.
    """
    schemas: dict[Field, edge.KeywordIndexParams | edge.DatetimeIndexParams] = {
        Field.TENANT: edge.KeywordIndexParams(is_tenant=True, memory=_RESIDENT)
    }
    schemas |= {field: edge.KeywordIndexParams(enable_hnsw=False, memory=_RESIDENT) for field in KEYWORDS}
    schemas |= {field: edge.DatetimeIndexParams(enable_hnsw=False, memory=_RESIDENT) for field in TIMES}
    return [edge.UpdateOperation.create_field_index(field.value, schema) for field, schema in schemas.items()]


def filter_of(restriction: Restriction) -> edge.Filter:
    """Return the engine's filter: every condition must hold.

    Who may see names the tenant already: the same again would cost a search a quarter of its time.
    """
    conditions = restriction.further if restriction.is_by_access else restriction.conditions
    return edge.Filter(must=[_condition(condition) for condition in conditions])


def point_of(point: Point, dense: list[float], lexical: Sparse) -> edge.Point:
    """Return the engine's point."""
    vectors: dict[str, list[float] | edge.SparseVector | list[list[float]]] = {DENSE: dense}
    if lexical.indices:
        vectors[LEXICAL] = edge.SparseVector(lexical.indices, lexical.values)
    return edge.Point(point.point_id, vectors, payload_of(point))


def upserting(points: list[edge.Point], version: int) -> edge.UpdateOperation:
    """Return the writing of points of one version, which leaves what a later version wrote."""
    not_newer = edge.Filter(must=[_condition(Below(Field.VERSION, version + 1))])
    return edge.UpdateOperation.upsert_points(points, condition=not_newer)


def dense_leg(vector: list[float], restriction: Restriction, limit: int) -> edge.QueryRequest:
    """Return the search by likeness."""
    query = edge.Query.Nearest(vector, DENSE)
    return edge.QueryRequest(
        limit,
        query=query,
        filter=filter_of(restriction),
        params=edge.SearchParams(exact=True),
        with_payload=_TOLD,
    )


def lexical_leg(terms: Sparse, restriction: Restriction, limit: int) -> edge.QueryRequest:
    """Return the search by terms, whose rarity is counted over what the caller may see and nothing else."""
    filter_ = filter_of(restriction)
    return edge.QueryRequest(
        limit,
        query=edge.Query.Nearest(edge.SparseVector(terms.indices, terms.values), LEXICAL),
        filter=filter_,
        params=edge.SearchParams(idf=edge.IdfParams(corpus=filter_)),
        with_payload=_TOLD,
    )


def _condition(condition: Condition) -> edge.FieldCondition:
    key = condition.field.value
    match condition:
        case AnyOf(values=values):
            return edge.FieldCondition(key, match=edge.MatchAny(list(values)))
        case NotAfter(at=at):
            return edge.FieldCondition(key, range=edge.RangeDateTime(lte=timestamp(at)))
        case After(at=at):
            return edge.FieldCondition(key, range=edge.RangeDateTime(gt=timestamp(at)))
        case Below(number=number):
            return edge.FieldCondition(key, range=edge.RangeFloat(lt=number))
    assert_never(condition)
