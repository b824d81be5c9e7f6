"""Of any memories and any caller: nothing outside the hard filter is found, and everything inside it can be."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.common.ids import TenantId
from caisson.memory.domain.indexing import Index, Point
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS, Engine
from tests.support.memory_points import NOW, a_filter, a_point, a_tenant, asking

pytestmark = LOCAL_MODE_WARNINGS

TENANTS = ["a", "a1", "A", "a/1", "b"]
SCOPES = ["tenant", "user:ana", "user:an", "user:bo", "team/a", "team/ab", "team", "tenan"]
TEXT = "harbour"

times = st.sampled_from([-2 * 86_400.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 86_400.0]).map(
    lambda seconds: NOW + timedelta(seconds=seconds)
)
memories = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(TENANTS),
        "scopes": st.frozensets(st.sampled_from(SCOPES), min_size=1, max_size=3),
        "layer": st.sampled_from(Layer),
        "valid_from": times,
        "valid_to": st.none() | times,
        "expires_at": st.none() | times,
        "chunks": st.integers(1, 3),
    }
).map(lambda memory: memory | {"valid_to": memory["valid_to"] and max(memory["valid_to"], memory["valid_from"])})
callers = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(TENANTS),
        "user": st.sampled_from(["ana", "an", "bo"]),
        "granted": st.frozensets(st.sampled_from(SCOPES[4:]), max_size=2),
        "now": times,
        "as_of": times,
        "layers": st.frozensets(st.sampled_from(Layer), max_size=2),
    }
)


def may_see(filter_: HardFilter, point: Point) -> bool:
    """The rule, once more and plainly."""
    return (
        point.tenant == filter_.principal.tenant
        and any(scope in filter_.principal.allowed for scope in point.scopes)
        and point.valid_from <= filter_.as_of
        and not _over(point.valid_to, filter_.as_of)
        and not _over(point.expires_at, filter_.now)
        and (not filter_.layers or point.layer in filter_.layers)
    )


def _over(end: datetime | None, at: datetime) -> bool:
    return end is not None and end <= at


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(memories, max_size=12), st.lists(callers, min_size=1, max_size=4))
async def test_exactly_what_a_caller_may_see_can_be_found(
    index: Index, engine: Engine, stored: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    base = a_tenant("property")
    named: Callable[[str], TenantId] = lambda name: TenantId(f"{base}/{name}")  # noqa: E731
    points = [
        a_point(named(memory["tenant"]), TEXT, f"mem-{number}", chunk=chunk, **_kept(memory))
        for number, memory in enumerate(stored)
        for chunk in range(memory["chunks"])
    ]
    await index.upsert(points)
    for caller in asked:
        filter_ = a_filter(named(caller["tenant"]), **_kept(caller))
        visible = {point.memory_id for point in points if may_see(filter_, point)}
        for dense in (True, False) if engine.dense else (False,):
            for sparse in (True, False) if dense else (True,):
                answer = await index.search(asking(TEXT, dense=dense, sparse=sparse), filter_)
                assert sorted(c.memory_id for c in answer.found) == sorted(visible), (filter_, dense, sparse)
    for tenant in TENANTS:
        await index.delete_memories(named(tenant), [f"mem-{number}" for number in range(len(stored))])


def _kept(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in {"tenant", "chunks"}}
