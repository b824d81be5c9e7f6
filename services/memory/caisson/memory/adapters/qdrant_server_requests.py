"""Our points, restrictions and legs in the words of a Qdrant server. Invariant: whatever ranks is restricted."""

from typing import assert_never

from qdrant_client import models

from caisson.memory.adapters.bm25 import Sparse
from caisson.memory.adapters.point_payload import DENSE, KEYWORDS, LEXICAL, TIMES, Field, payload_of
from caisson.memory.adapters.restrictions import After, AnyOf, Below, Condition, NotAfter, Restriction
from caisson.memory.domain.indexing import Point

_TOLD = [Field.MEMORY.value]
_MAX_LIMIT = 10_000


def dense_parameters(dimensions: int) -> dict[str, models.VectorParams]:
    """Return the dense vectors' configuration."""
    return {
        DENSE: models.VectorParams(
            size=dimensions, distance=models.Distance.COSINE, datatype=models.Datatype.FLOAT16, on_disk=False
        )
    }


def lexical_parameters() -> dict[str, models.SparseVectorParams]:
    """Return the sparse vectors' configuration."""
    return {LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)}


def graphs() -> models.HnswConfigDiff:
    """Return one graph for each tenant, and none over all of them."""
    return models.HnswConfigDiff(m=0, payload_m=16)


def strictness() -> models.StrictModeConfig:
    """Return what the server refuses: a filter on a field without an index, an answer without bound."""
    return models.StrictModeConfig(
        enabled=True,
        unindexed_filtering_retrieve=False,
        unindexed_filtering_update=False,
        max_query_limit=_MAX_LIMIT,
    )


def payload_indexes() -> dict[str, models.PayloadSchemaType | models.KeywordIndexParams | models.DatetimeIndexParams]:
    """Return the index of each field that is filtered on; to be created before any point is stored."""
    keyword, datetime = models.KeywordIndexType.KEYWORD, models.DatetimeIndexType.DATETIME
    return {
        Field.TENANT.value: models.KeywordIndexParams(type=keyword, is_tenant=True),
        **{field.value: models.KeywordIndexParams(type=keyword, enable_hnsw=False) for field in KEYWORDS},
        **{field.value: models.DatetimeIndexParams(type=datetime, enable_hnsw=False) for field in TIMES},
        Field.VERSION.value: models.PayloadSchemaType.INTEGER,
    }


def filter_of(restriction: Restriction) -> models.Filter:
    """Return the server's filter: every condition must hold."""
    return models.Filter(must=[_condition(condition) for condition in restriction.conditions])


def not_newer(version: int) -> models.Filter:
    """Return the condition under which a stored point is replaced: a later version's stays."""
    return models.Filter(must=[_condition(Below(Field.VERSION, version + 1))])


def point_of(point: Point, dense: list[float], lexical: Sparse) -> models.PointStruct:
    """Return the server's point."""
    vector: dict[str, list[float] | models.SparseVector] = {DENSE: dense}
    if lexical.indices:
        vector[LEXICAL] = models.SparseVector(indices=lexical.indices, values=lexical.values)
    return models.PointStruct(id=point.point_id, vector=vector, payload=payload_of(point))


def dense_leg(vector: list[float], restriction: Restriction, limit: int) -> models.QueryRequest:
    """Return the search by likeness; ACORN keeps its recall where tenant and scopes together leave little."""
    return models.QueryRequest(
        query=vector,
        using=DENSE,
        filter=filter_of(restriction),
        params=models.SearchParams(acorn=models.AcornSearchParams(enable=True)),
        limit=limit,
        with_payload=_TOLD,
    )


def lexical_leg(terms: Sparse, restriction: Restriction, limit: int) -> models.QueryRequest:
    """Return the search by terms, whose rarity is counted over what the caller may see and nothing else."""
    filter_ = filter_of(restriction)
    return models.QueryRequest(
        query=models.SparseVector(indices=terms.indices, values=terms.values),
        using=LEXICAL,
        filter=filter_,
        params=models.SearchParams(idf=models.IdfCorpusParams(corpus=filter_)),
        limit=limit,
        with_payload=_TOLD,
    )


def _condition(condition: Condition) -> models.FieldCondition:
    key = condition.field.value
    match condition:
        case AnyOf(values=values):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        case NotAfter(at=at):
            return models.FieldCondition(key=key, range=models.DatetimeRange(lte=at))
        case After(at=at):
            return models.FieldCondition(key=key, range=models.DatetimeRange(gt=at))
        case Below(number=number):
            return models.FieldCondition(key=key, range=models.Range(lt=number))
    assert_never(condition)
