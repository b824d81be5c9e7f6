"""An expiry counts when one reads, on every engine, whether or not anything has swept."""

from datetime import timedelta
from typing import Any

import pytest

from caisson.common.errors import NotFound
from caisson.common.memories import ById, ListMemories, OfUser, PatchMemory
from caisson.common.recalls import Search
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search

pytestmark = LOCAL_MODE_WARNINGS

CODE, DOOR = "The guest code is 4711", "The guest entrance is north"


async def test_an_expired_memory_is_told_nowhere_before_any_sweep(plane: MemoryPlane) -> None:
    """M24. Expired a second ago and not swept: absent from search, context, lists, export and by id, asked warm too.

    Recalls inside a run come by the same call as over HTTP; there is no other surface.
    """
    tenant = new_tenant()
    async with plane.asker(tenant) as ana:
        id_ = await remember(ana, CODE, expires_at="2040-01-01T00:00:00Z", external_id="code")
        kept = await remember(ana, DOOR)
        for _ in range(2):
            assert set(await search(ana, "guest code")) == {CODE, DOOR}
        await plane.store.execute(
            "UPDATE memory.memories SET expires_at = now() - interval '1 second'"
            " WHERE tenant_id = $1 AND memory_id = $2",
            tenant,
            id_,
        )
        for _ in range(2):
            assert await search(ana, "guest code") == [DOOR]
        context = await ana.post("/v1/memories/context", json={"query": "guest code"})
        assert (context.json()["ids"], "4711" in context.text) == ([kept], False)
        for path in ("/v1/memories", "/v1/users/ana/memories/export"):
            assert [item["id"] for item in (await ana.get(path)).json()["items"]] == [kept]
        for path in (id_, "code", f"{id_}/history"):
            assert (await ana.get(f"/v1/memories/{path}")).status_code == 404
        swept = "SELECT count(*) FROM memory.memories WHERE tenant_id = $1"
        assert await plane.store.fetchval(swept, tenant) == 2, "nothing has swept"


EXPIRIES: list[tuple[dict[str, Any], str]] = [
    ({"expires_at": 1}, "from the beginning"),
    ({}, "set by a patch"),
    ({"expires_at": 3_600}, "shortened by a patch"),
]


@pytest.mark.parametrize(("given", "how"), EXPIRIES, ids=[how for _, how in EXPIRIES])
async def test_an_expiry_holds_on_every_engine(each_desk: Desk, given: dict[str, int], how: str) -> None:
    """M27. On the embedded index, on the server's and on full text alone, an expiry is kept, told, and enforced."""
    desk = each_desk
    end = desk.clock() + timedelta(seconds=1)
    at_first: dict[str, Any] = {name: end - timedelta(seconds=1) + timedelta(seconds=s) for name, s in given.items()}
    id_ = await desk.store(CODE, **at_first)
    await desk.store(DOOR)
    if at_first != {"expires_at": end}:
        await desk.correct(id_, expires_at=end)
    assert (await desk.get(id_)).expires_at == end
    told = await desk.recalled("guest code")
    assert {hit.memory.id: hit.memory.expires_at for hit in told.hits}[id_] == end

    desk.clock.ahead = timedelta(seconds=2)

    assert CODE not in await desk.search("guest code"), how
    assert CODE not in await desk.search("guest code", as_of=end - timedelta(milliseconds=500))
    context = await desk.recall.context(Search(caller=desk.caller(), query="guest code"))
    assert "4711" not in context.text
    listed = await desk.reading.page(ListMemories(caller=desk.caller()))
    exported = await desk.reading.export(OfUser(caller=desk.caller(), user_id="ana"))
    assert [item.text for item in listed.items] == [item.text for item in exported.items] == [DOOR]
    for act in (desk.reading.get, desk.reading.history, desk.forgetting.delete):
        with pytest.raises(NotFound):
            await act(ById(caller=desk.caller(), id=id_))


async def test_what_has_expired_cannot_be_brought_back(desk: Desk) -> None:
    """M25. Expired and not swept: a get is not found, and no read, patch or repetition revives it."""
    id_ = await desk.store(CODE, expires_at=desk.clock() + timedelta(hours=1), external_id="code")
    desk.clock.ahead = timedelta(hours=2)
    later = desk.clock() + timedelta(days=1)
    for name in (id_, "code"):
        with pytest.raises(NotFound):
            await desk.get(name)
        for change in ({"expires_at": later}, {"status": "active"}, {"importance": 1.0}):
            with pytest.raises(NotFound):
                await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=name, **change))
    assert await desk.search("guest code") == []
    [again] = await desk.remember(CODE)
    assert (again.status, again.similar_to) == ("created", None)
    assert again.id != id_, "said again, it is a new memory and no revival"
    for name in (id_, "code"):
        with pytest.raises(NotFound):
            await desk.get(name)


async def test_reading_extends_nothing_and_the_sweep_takes_row_and_points(desk: Desk) -> None:
    """M25. Reads leave the end where it is; after it, the sweep takes the row, its points and what it used."""
    end = desk.clock() + timedelta(hours=1)
    id_ = await desk.store(CODE, expires_at=end)
    for _ in range(3):
        await desk.search("guest code")
        assert (await desk.get(id_)).expires_at == end
    while await desk.housekeeping.count_uses(await desk.lease()):
        pass
    assert (await desk.get(id_)).expires_at == end
    desk.clock.ahead = timedelta(hours=2)
    await desk.rows(
        "UPDATE memory.memories SET expires_at = now() - interval '1 second' WHERE tenant_id = $1 AND memory_id = $2",
        id_,
    )
    assert await desk.housekeeping.drop_expired(await desk.lease()) >= 1
    await desk.indexer.relay(64)
    assert await desk.indexed() == set()
    assert await desk.rows("SELECT rows, bytes FROM memory.usage WHERE tenant_id = $1") == [(0, 0), (0, 0)]
