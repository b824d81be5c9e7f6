"""Utility: learned from explicit feedback on what was really told, and from nothing else."""

import asyncio

import pytest

from caisson.common.errors import Conflict, NotFound
from caisson.common.recalls import Feedback
from tests.support.memory_desk import Desk


async def reward(desk: Desk, retrieval_id: str, value: float, *, user: str | None = None) -> list[str]:
    request = Feedback(caller=desk.caller(user), retrieval_id=retrieval_id, reward=value)
    return (await desk.recall.feedback(request)).updated


async def utility(desk: Desk, memory_id: str) -> tuple[float, int]:
    view = await desk.get(memory_id)
    return round(view.q, 9), view.visits


async def test_reading_changes_nothing_and_a_reward_moves_a_tenth_of_the_way(desk: Desk) -> None:
    memory = await desk.store("red kites nest in the beech")
    for _ in range(100):
        told = await desk.recalled("where do red kites nest")
    assert await utility(desk, memory) == (0.0, 0)
    before = await desk.get(memory)
    assert await reward(desk, told.retrieval_id, 1.0) == [memory]
    assert await utility(desk, memory) == (0.1, 1)
    after = await desk.get(memory)
    assert (after.version, after.updated_at) == (before.version, before.updated_at), (
        "utility is no change of a memory"
    )


async def test_credit_is_split_over_what_was_told_and_over_nothing_else(desk: Desk) -> None:
    told = [await desk.store(f"the {name} service listens on port {port}") for name, port in (("a1", 1), ("b2", 2))]
    other = await desk.store("the cellar is damp")
    recalled = await desk.recalled("service listens on port", k=2)
    assert set(await reward(desk, recalled.retrieval_id, -1.0)) == set(told)
    assert [await utility(desk, memory) for memory in told] == [(-0.05, 1)] * 2
    assert await utility(desk, other) == (0.0, 0)


async def test_a_recall_is_rewarded_once_however_many_ask(desk: Desk) -> None:
    memory = await desk.store("red kites nest in the beech")
    told = await desk.recalled("red kites nest")
    results = await asyncio.gather(*(reward(desk, told.retrieval_id, 1.0) for _ in range(10)), return_exceptions=True)
    assert sum(result == [memory] for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 9
    assert await utility(desk, memory) == (0.1, 1)


async def test_a_recall_is_rewarded_by_whom_it_was_told(desk: Desk) -> None:
    memory = await desk.store("the pool opens at nine", scopes=["tenant"])
    told = await desk.recalled("when does the pool open")
    for user, retrieval in (("bo", told.retrieval_id), (None, "ret_00000000000000000000000000")):
        with pytest.raises(NotFound, match="no such retrieval"):
            await reward(desk, retrieval, 1.0, user=user)
    assert await utility(desk, memory) == (0.0, 0)


async def test_what_was_forgotten_meanwhile_learns_nothing(desk: Desk) -> None:
    kept, gone = await desk.store("red kites nest in beeches"), await desk.store("red kites nest in oaks")
    told = await desk.recalled("red kites nest")
    assert {hit.memory.id for hit in told.hits} == {kept, gone}
    await desk.delete(gone)
    assert await reward(desk, told.retrieval_id, 1.0) == [kept]


async def test_concurrent_rewards_of_one_memory_all_count(desk: Desk) -> None:
    memory = await desk.store("red kites nest in the beech")
    told = [await desk.recalled("red kites nest") for _ in range(12)]
    await asyncio.gather(*(reward(desk, item.retrieval_id, 1.0) for item in told))
    assert await utility(desk, memory) == (round(1 - 0.9**12, 9), 12)
