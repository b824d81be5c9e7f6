"""The same questions of several principals in any order: a kept search tells each what a search of its own would."""

from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.memory_world import PAST, SESSIONS, USERS, World

ASKERS = [
    (tenant, user, granted)
    for tenant in (0, 1, 2)
    for user in USERS[:2]
    for granted in ((), ("team:a",), ("team:ab",), ("user:an", "team"))
]
QUESTIONS: list[dict[str, Any]] = [
    {"query": query, "as_of": as_of, "session_id": session, "layers": layers}
    for query in ("amber birch", "copper")
    for as_of in (None, PAST[2])
    for session in SESSIONS[:2]
    for layers in ([], ["semantic", "episodic"])
]


@given(
    asked=st.lists(st.tuples(st.sampled_from(ASKERS), st.sampled_from(QUESTIONS)), min_size=2, max_size=5),
    order=st.randoms(use_true_random=False),
)
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_a_kept_search_tells_what_a_new_one_finds(
    world: World, asked: list[tuple[Any, dict[str, Any]]], order: Any
) -> None:
    repeated = asked * 3
    order.shuffle(repeated)
    unlike = count(51)
    cached = 0
    for (tenant, user, granted), question in repeated:
        desk = world.of(world.tenants[tenant])
        caller = desk.caller(user, *granted)
        kept = await desk.recalled(caller=caller, k=50, token_budget=100_000, **question)
        another_k = next(unlike)
        found = await desk.recalled(caller=caller, k=another_k, token_budget=100_000, **question)
        assert [hit.memory.id for hit in kept.hits] == [hit.memory.id for hit in found.hits]
        assert await world.overheard(desk, caller, " ".join(hit.memory.text for hit in kept.hits)) == set()
        cached += kept.diagnostics.cached
    assert cached >= len(asked), "every question was asked three times"
