"""Periodic work is done by one replica at a time, taken over from one that died, and never by two."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from caisson.common.errors import LeaseLost, Unavailable
from caisson.common.health import Progress
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate, transaction
from caisson.memory.adapters.postgres.leases import PostgresLeases, hold
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.housekeeping import Unused
from caisson.memory.domain.leasing import Lease, State, Work
from caisson.memory.loops.leased import OVERDUE_SECONDS, Leased
from tests.support.eventually import eventually
from tests.support.gateway import create_database
from tests.support.memory_desk import Desk, Turntable, WordEmbedder, open_index

QUERIES = load_queries(QUERIES_FILE)
SWEEP = Work.SWEEP


@pytest.fixture(scope="module")
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    pool = await connect_pool(await create_database(postgres_url), application="tests")
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.fixture
async def leases(pool: Pool) -> PostgresLeases:
    await pool.execute("UPDATE memory.leases SET due_at = now(), leased_until = NULL, state = '{}'")
    return PostgresLeases(pool, QUERIES)


@pytest.fixture
async def desk(pool: Pool, leases: PostgresLeases, tmp_path: Path) -> AsyncIterator[Desk]:
    embedder = WordEmbedder()
    async with open_index(tmp_path, embedder) as index:
        yield Desk(pool=pool, index=index, embedder=embedder, clock=Turntable())


class Counting:
    """A pass of three steps, of which the first `fails` come to nothing."""

    def __init__(self, *, fails: int = 0) -> None:
        self.fails = fails
        self.done: list[int] = []
        self.at_once = 0

    async def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        self.at_once += 1
        assert self.at_once == 1, "two replicas work at once"
        try:
            for step in range(lease.state.get("step", 0), 3):
                if self.fails and step == 1:
                    self.fails -= 1
                    raise Unavailable("the index is away")
                self.done.append(step)
                yield {"step": step + 1}
            yield {}
        finally:
            self.at_once -= 1


def replica(leases: PostgresLeases, pass_: Any, *, every_s: float = 3_600) -> Leased:
    return Leased(SWEEP, pass_, leases, every_s=every_s, progress=Progress("sweep", limit_s=60))


async def lapse(pool: Pool) -> None:
    await pool.execute("UPDATE memory.leases SET leased_until = now() - interval '1 second'")


async def test_of_many_replicas_one_does_the_pass_and_nobody_again_before_it_is_due(leases: PostgresLeases) -> None:
    work = Counting()
    replicas = [replica(leases, work) for _ in range(4)]
    ended = await asyncio.gather(*(one.turn() for one in replicas))
    assert (sorted(ended), work.done) == ([False, False, False, True], [0, 1, 2])
    assert [await one.turn() for one in replicas] == [False] * 4
    await leases.hasten(SWEEP)
    assert await replicas[2].turn()
    assert work.done == [0, 1, 2] * 2


async def test_a_replica_without_the_lease_is_healthy(leases: PostgresLeases) -> None:
    assert await leases.take(SWEEP) is not None
    progress = Progress("sweep", limit_s=60)
    idle = Leased(SWEEP, Counting(), leases, every_s=0.01, progress=progress)
    running = asyncio.create_task(idle.run())

    async def is_ready() -> bool:
        try:
            await progress.check()
        except Unavailable:
            return False
        return True

    await eventually(is_ready)
    running.cancel()


async def test_a_pass_that_fails_or_is_stopped_goes_on_elsewhere_at_once(leases: PostgresLeases) -> None:
    work = Counting(fails=1)
    with pytest.raises(Unavailable):
        await replica(leases, work).turn()
    assert await replica(leases, work).turn(), "nobody waits for the lease to lapse"
    assert work.done == [0, 1, 2], "and nothing is done twice"


async def test_what_a_dead_replica_began_is_gone_on_with_once_its_lease_lapses(
    pool: Pool, leases: PostgresLeases
) -> None:
    dead = await leases.take(SWEEP)
    assert dead is not None
    await leases.keep(dead, {"step": 2})
    work = Counting()
    assert not await replica(leases, work).turn(), "the lease is respected"
    await lapse(pool)
    assert await replica(leases, work).turn()
    assert work.done == [2]
    for late in (leases.keep(dead, {"step": 0}), leases.finish(dead, {}, again_in_s=1)):
        with pytest.raises(LeaseLost):
            await late
    await leases.give_back(dead)
    assert await leases.take(SWEEP) is None, "the pass that ended stands"


async def test_every_write_of_a_replica_that_lost_its_lease_is_refused(desk: Desk) -> None:
    """Each of these has something to write; with the lease each does, see the tests of what it is for."""
    expired = await desk.store("The code is 4711", expires_at=desk.clock() + timedelta(seconds=1))
    unused = await desk.store("Likes tea", importance=0.1)
    await desk.search("tea")
    episodes = [await desk.episode(f"restarted the ledger {n}", subject="ledger") for n in range(5)]
    await desk.pool.execute(
        "UPDATE memory.memories SET used_at = $1, updated_at = $1", desk.clock() - timedelta(days=400)
    )
    desk.clock.ahead = timedelta(minutes=1)
    [group] = (await desk.consolidate(dry_run=True, due=True)).groups
    assert sorted(group["sources"]) == sorted(episodes)
    before = await everything(desk)
    for work in Work:
        lost = await desk.lease(work)
        assert (await desk.lease(work)).fence == lost.fence + 1
        for write in writes(desk, lost, unused):
            with pytest.raises(LeaseLost):
                await write
    assert await everything(desk) == before
    assert {row["memory_id"] for row in before[0]} >= {expired, unused, *episodes}


def writes(desk: Desk, lease: Lease, memory_id: str) -> list[Any]:
    return [
        desk.housekeeping.drop_expired(lease),
        desk.housekeeping.count_uses(lease),
        desk.housekeeping.cool_unused(Unused(), lease),
        desk.housekeeping.drop_old_records(lease),
        desk.inventory.enqueue(desk.tenant, {memory_id: 0}, lease=lease),
        consolidated(desk, lease),
    ]


async def consolidated(desk: Desk, lease: Lease) -> None:
    filter_ = desk.filter()
    for group in await desk.consolidator.plan(filter_):
        await desk.consolidator.apply_for_owner(group, lease)


async def everything(desk: Desk) -> list[Any]:
    tables = ("memories", "history", "retrievals", "index_outbox", "events", "tombstones", "sources")
    return [await desk.pool.fetch(f"SELECT * FROM memory.{table} ORDER BY 1, 2, 3") for table in tables]


async def test_nobody_takes_a_lease_while_its_holder_writes(pool: Pool, leases: PostgresLeases) -> None:
    brief = PostgresLeases(pool, QUERIES, lease_s=0.2)
    lease = await brief.take(SWEEP)
    assert lease is not None
    async with transaction(pool) as connection:
        await hold(QUERIES, connection, lease)
        await eventually(lambda: pool.fetchval("SELECT leased_until < now() FROM memory.leases WHERE work = 'sweep'"))
        assert await leases.take(SWEEP) is None, "the write that was begun in time ends first"
    assert await leases.take(SWEEP) is not None


async def test_work_that_nobody_does_is_overdue_until_somebody_does_it(pool: Pool, leases: PostgresLeases) -> None:
    assert await leases.take(SWEEP) is not None
    long_ago = "due_at = now() - interval '10 minutes', progressed_at = now() - interval '9 minutes'"
    await pool.execute(f"UPDATE memory.leases SET {long_ago}")
    running = asyncio.create_task(replica(leases, Counting(), every_s=0.01).run())
    await eventually(lambda: _overdue() > 500)  # a holder that makes no step counts as none
    await lapse(pool)
    await eventually(lambda: _overdue() < 60)
    running.cancel()


def _overdue() -> float:
    return float(OVERDUE_SECONDS.labels(work=SWEEP)._value.get())
