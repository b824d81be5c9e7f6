"""Utility reorders what was found and passed, within bounds, and reading teaches nothing."""

import asyncio

from caisson.common.recalls import Feedback
from caisson.memory.domain.utility import SWAY
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS

pytestmark = LOCAL_MODE_WARNINGS

READ = "kites nest in beeches of the north wood"
EXACT = "kites nest in beeches of the north"
ALIKE = "kites nest north"
TOWARDS_READ = "which kites nest in the north wood of beeches"


async def test_a_thousand_readings_move_nothing(desk: Desk) -> None:
    """M49. After 1,000 recalls Q, visits and the order are as before, and the very text still comes first."""
    read = await desk.store(READ)
    await desk.store(EXACT)
    queries = (EXACT, ALIKE, TOWARDS_READ)
    before = [await desk.recalled(query) for query in queries]
    for _ in range(25):
        await asyncio.gather(*(desk.recalled(TOWARDS_READ, k=1) for _ in range(40)))
    while await desk.housekeeping.count_uses(await desk.lease()):
        pass
    after = [await desk.recalled(query) for query in queries]
    assert [[(hit.memory.id, hit.score) for hit in told.hits] for told in after] == [
        [(hit.memory.id, hit.score) for hit in told.hits] for told in before
    ]
    assert after[0].hits[0].memory.text == EXACT
    view = await desk.get(read)
    assert (view.q, view.visits) == (0.0, 0)


async def test_the_most_useful_memory_gains_a_bounded_share(desk: Desk) -> None:
    """M49. Whatever rewards a memory had, its score grows by at most the cap and stays below the very text's."""
    await desk.store(READ)
    await desk.store(EXACT)
    [plain] = [hit.score for hit in (await desk.recalled(ALIKE)).hits if hit.memory.text == READ]
    await reward(desk, TOWARDS_READ, times=60)
    swayed = await desk.recalled(ALIKE)
    [gained] = [hit.score for hit in swayed.hits if hit.memory.text == READ]
    assert plain < gained <= plain * (1 + SWAY) + 1e-9
    assert (await desk.recalled(EXACT)).hits[0].memory.text == EXACT


async def test_utility_lifts_only_what_was_found_and_passed(each_desk: Desk) -> None:
    """M59. A high Q moves a related memory up among the candidates and never makes an unrelated one appear."""
    useful = await each_desk.store(READ)
    better = await each_desk.store(EXACT)
    unrelated = await each_desk.store("invoices are archived for ten years")
    before = await each_desk.recalled(ALIKE)
    assert unrelated not in {hit.memory.id for hit in before.hits}
    await reward(each_desk, TOWARDS_READ, times=60)
    await reward(each_desk, "invoices archived ten years", times=60)
    assert (await each_desk.get(useful)).q > 0.99
    assert (await each_desk.get(unrelated)).q > 0.99
    after = await each_desk.recalled(ALIKE)
    assert [hit.memory.id for hit in after.hits] == [useful, better]
    assert after.diagnostics.found - after.diagnostics.gated == 2
    assert [hit.memory.id for hit in before.hits] == [better, useful], "it did move up"


async def reward(desk: Desk, query: str, *, times: int) -> None:
    """Let the first memory that a query tells learn that it helped, again and again."""
    for _ in range(times):
        told = await desk.recalled(query, k=1)
        request = Feedback(caller=desk.caller(), retrieval_id=told.retrieval_id, reward=1.0)
        assert len((await desk.recall.feedback(request)).updated) == 1
