"""The relays serve tenants in turn, whatever one of them has waiting; and they are ready while they get on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from caisson.common.errors import Unavailable
from caisson.common.health import Progress
from caisson.common.ids import TenantId
from caisson.common.postgres import Pool
from caisson.memory.loops.relays import OutgoingPoints, Relay
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder, open_index, open_store

LONG = "of the long book " * 5_000


@pytest.fixture(scope="module")
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    async with open_store(postgres_url) as pool:
        yield pool


@pytest.fixture(scope="module")
async def index(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Outage]:
    async with open_index(tmp_path_factory.mktemp("turns"), WordEmbedder()) as index:
        yield index


@pytest.fixture
async def busy(pool: Pool, index: Outage) -> Desk:
    """The tenant that has much to be indexed; what it stores waits for the relay."""
    await pool.execute("TRUNCATE memory.memories, memory.usage, memory.index_outbox, memory.events CASCADE")
    index.away = False
    return Desk(pool=pool, index=index, embedder=WordEmbedder(), clock=Turntable())


@pytest.fixture
def other(busy: Desk) -> Desk:
    """Its neighbour, that comes later and before it in the alphabet."""
    return replace(busy, tenant=TenantId(f"a {busy.tenant}"))


async def leave(desk: Desk, *texts: str) -> None:
    """Store texts that nothing has indexed yet."""
    desk.index.away = True
    for at in range(0, len(texts), 100):
        await desk.remember(*texts[at : at + 100])
    desk.index.away = False
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now(), attempts = 0")


async def waiting(desk: Desk) -> int:
    return len(await desk.rows("SELECT 1 FROM memory.index_outbox WHERE tenant_id = $1"))


async def rounds_until_indexed(desk: Desk, relay: Desk, *, limit: int) -> int:
    """Return after how many rounds nothing of a tenant waits any more."""
    for rounds in range(1, 100):
        assert await relay.indexer.relay(limit) > 0
        if await waiting(desk) == 0:
            return rounds
    raise AssertionError("it never came to its turn")


async def test_long_texts_of_one_tenant_keep_no_others_waiting(busy: Desk, other: Desk) -> None:
    await leave(busy, *(f"chapter {n} {LONG}" for n in range(12)))
    await leave(other, *(f"page {n} {LONG}" for n in range(3)), "Likes tea")
    assert await rounds_until_indexed(other, busy, limit=64) <= 6, "three of its own and three of the other's"
    assert await waiting(busy) >= 9


async def test_tenants_with_long_texts_come_one_after_the_other(busy: Desk) -> None:
    desks = [replace(busy, tenant=TenantId(f"{busy.tenant} {n}")) for n in range(5)]
    for desk in desks:
        await leave(desk, f"page 1 {LONG}", f"page 2 {LONG}")
    for _ in desks:
        assert await busy.indexer.relay(64) == 1
    assert [await waiting(desk) for desk in desks] == [1] * 5


async def test_hundreds_of_brief_texts_of_one_tenant_keep_no_others_waiting(busy: Desk, other: Desk) -> None:
    await leave(busy, *(f"the locker {n} is free" for n in range(300)))
    await leave(other, *(f"the drawer {n} is full" for n in range(10)))
    assert await rounds_until_indexed(other, busy, limit=8) <= 3
    assert await waiting(busy) >= 285


async def test_more_tenants_than_a_round_takes_come_each_to_their_turn(busy: Desk, other: Desk) -> None:
    desks = [replace(busy, tenant=TenantId(f"{busy.tenant} {n}")) for n in range(9)]
    for desk in desks:
        await leave(desk, *(f"the locker {n} is free" for n in range(20)))
    await leave(other, "Likes tea")
    last = replace(busy, tenant=TenantId(f"{busy.tenant} last"))
    await leave(last, "Likes coffee")
    assert await rounds_until_indexed(last, busy, limit=4) <= 3
    assert await waiting(other) == 0


async def test_a_long_text_comes_to_its_turn_while_there_are_ever_more_brief_ones(busy: Desk, other: Desk) -> None:
    await leave(other, f"page 1 {LONG}")
    await leave(busy, *(f"the locker {n} is free" for n in range(100)))
    assert await rounds_until_indexed(other, busy, limit=4) == 4


async def test_a_round_takes_no_more_bytes_than_it_can_do_in_a_few_seconds(busy: Desk) -> None:
    await leave(busy, *(f"chapter {n} " + "of a middling book " * 3_000 for n in range(12)))
    assert await busy.indexer.relay(64) == 5
    assert [await busy.indexer.relay(64) for _ in range(3)] == [5, 2, 0]


async def test_a_relay_is_ready_while_it_gets_on_and_not_while_it_stands_still(busy: Desk, index: Outage) -> None:
    now = 0.0
    progress = Progress("index relay", limit_s=60)
    outgoing = OutgoingPoints(busy.indexer, busy.outbox)
    relay = Relay(outgoing, wake=asyncio.Event(), poll_s=1, progress=progress, clock=lambda: now)
    await leave(busy, *(f"chapter {n} {LONG}" for n in range(3)))
    await busy.pool.execute("UPDATE memory.index_outbox SET enqueued_at = now() - interval '1 hour'")
    assert await relay.turn(), "another round follows at once"
    now = 100.0
    assert (await busy.outbox.backlog()).oldest_s >= 3_600
    await relay.check()
    await progress.check()

    index.away = True
    assert not await relay.turn()
    now = 121.0
    with pytest.raises(Unavailable, match="memories for the index: none got through for 121 s, the oldest waits"):
        await relay.check()

    index.away = False
    await busy.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    assert await relay.turn()
    await relay.check()
    while await relay.turn():
        pass
    now = 1_000.0
    await relay.check()
