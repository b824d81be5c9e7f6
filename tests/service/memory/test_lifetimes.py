"""How long a memory is told: its end counts at the read, whatever the sweep has done."""

import asyncio
from datetime import timedelta

from caisson.common.memories import ById, ListMemories, NewMemory, PatchMemory
from caisson.memory.domain.housekeeping import Unused
from tests.support.memory_desk import Desk


async def test_an_expired_text_may_be_said_again(desk: Desk) -> None:
    first = await desk.store("The guest code is 4711", expires_at=desk.clock() + timedelta(seconds=1))
    desk.clock.ahead = timedelta(seconds=2)
    assert await desk.store("The guest code is 4711") != first


async def test_the_long_unused_goes_cold_and_an_exact_hit_or_a_hand_wakes_it(desk: Desk) -> None:
    id_ = await desk.store("Likes tea", importance=0.1)
    important = await desk.store("Is allergic to nuts", importance=1.0)
    await desk.pool.execute(
        "UPDATE memory.memories SET used_at = now() - interval '400 days' WHERE tenant_id = $1", desk.tenant
    )
    while (await desk.get(id_)).status == "active":
        await desk.housekeeping.cool_unused(Unused(), await desk.lease())
    assert (await desk.get(important)).status == "active"
    await desk.indexer.relay(64)
    assert await desk.indexed() == {important}
    assert await desk.search("tea") == []
    listed = await desk.reading.page(ListMemories(caller=desk.caller(), status="cold"))
    assert [item.id for item in listed.items] == [id_]
    [again] = await desk.remember("likes  TEA")
    assert (again.status, again.id) == ("duplicate_of", id_)
    assert await desk.search("tea") == ["Likes tea"]

    await desk.pool.execute(
        "UPDATE memory.memories SET used_at = now() - interval '400 days' WHERE memory_id = $1", id_
    )
    while (await desk.get(id_)).status == "active":
        await desk.housekeeping.cool_unused(Unused(), await desk.lease())
    woken = await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=id_, status="active"))
    assert woken.status == "active"
    assert await desk.search("tea") == ["Likes tea"]
    history = await desk.reading.history(ById(caller=desk.caller(), id=id_))
    assert [entry.change for entry in history.entries] == ["remembered", "cooled", "woken", "cooled", "woken"]


async def test_what_recalls_use_stays_warm(desk: Desk) -> None:
    id_ = await desk.store("Likes tea", importance=0.1)
    await desk.pool.execute(
        "UPDATE memory.memories SET used_at = now() - interval '400 days' WHERE memory_id = $1", id_
    )
    await desk.search("tea")
    before = await desk.get(id_)
    while await desk.housekeeping.count_uses(await desk.lease()):
        pass
    for _ in range(3):
        await desk.housekeeping.cool_unused(Unused(), await desk.lease())
    after = await desk.get(id_)
    assert after == before, "use is no change, and what is used does not cool"


async def test_a_list_goes_on_where_it_stopped_while_others_write(desk: Desk) -> None:
    ids = [await desk.store(f"note {n}") for n in range(7)]
    seen: list[str] = []
    before = None
    while True:
        page = await desk.reading.page(ListMemories(caller=desk.caller(), limit=3, before=before))
        seen += [item.id for item in page.items]
        await desk.store(f"a newer one {len(seen)}")
        before = page.next_before
        if before is None:
            break
    assert seen == ids[::-1]
    page = await desk.reading.page(ListMemories(caller=desk.caller(), before=ids[2]))
    assert [item.id for item in page.items] == ids[1::-1], "an id is a cursor too"


async def test_what_is_remembered_at_once_is_listed_in_the_order_in_which_it_was_told(desk: Desk) -> None:
    texts = [f"the locker {n} belongs to team {n}" for n in range(20)]
    told = [NewMemory(text=text, external_id=f"locker {n}" if n % 2 else None) for n, text in enumerate(texts)]
    await desk.remember(*told)
    items = (await desk.reading.page(ListMemories(caller=desk.caller(), limit=20))).items
    assert [item.text for item in items] == texts[::-1], "ids that are made of a product's own have no order"
    assert all(item.created_at == item.updated_at for item in items)


async def test_parallel_changes_with_one_expected_version_let_one_through(desk: Desk) -> None:
    id_ = await desk.store("Likes tea")
    patches = [
        PatchMemory(caller=desk.caller(), id=id_, expected_version=1, text=f"Likes tea number {n}") for n in range(8)
    ]
    results = await asyncio.gather(*map(desk.remembering.correct, patches), return_exceptions=True)
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert {getattr(result, "code", "changed") for result in results} == {"conflict", "changed"}
    assert (await desk.get(id_)).version == 2
