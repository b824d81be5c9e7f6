"""What the leased passes do: reconcile a tenant of any size, and consolidate what nobody uses any more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from caisson.common.ids import TenantId
from caisson.common.memories import PatchMemory
from caisson.common.postgres import Pool, connect_pool, migrate
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from caisson.memory.domain.leasing import Pass, State, Work
from caisson.memory.domain.quotas import Holding
from caisson.memory.domain.reconciling import PAGE_MEMORIES, Reconciler
from caisson.memory.loops.consolidating import ConsolidatePass
from caisson.memory.loops.upkeep import ReconcilePass
from tests.support.gateway import create_database
from tests.support.memory_desk import AMPLE, Desk, Turntable, WordEmbedder, open_index


@pytest.fixture(scope="module")
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    pool = await connect_pool(await create_database(postgres_url), application="tests")
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.fixture
async def desk(pool: Pool, tmp_path: Path) -> AsyncIterator[Desk]:
    await pool.execute("TRUNCATE memory.memories, memory.usage, memory.index_outbox, memory.events CASCADE")
    await pool.execute("UPDATE memory.leases SET state = '{}'")
    embedder = WordEmbedder()
    async with open_index(tmp_path, embedder) as index:
        yield Desk(pool=pool, index=index, embedder=embedder, clock=Turntable())


async def finish(desk: Desk, pass_: Pass, work: Work, *, steps: int | None = None) -> list[State]:
    """Do a pass under a fresh lease, or only so many steps of it, as a replica that dies then."""
    lease = await desk.lease(work)
    states: list[State] = []
    stepping = pass_.steps(lease)
    async for state in stepping:
        await desk.leases.keep(lease, state)
        states.append(state)
        if len(states) == steps:
            await stepping.aclose()
            break
    return states


class Watched:
    """The index, and how much of it was asked for at once."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.asked: list[Sequence[str] | None] = []

    async def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        self.asked.append(memory_ids)
        async for row in self.desk.index.stored(tenant, memory_ids):
            yield row


async def fill(desk: Desk, count: int) -> list[str]:
    ids: list[str] = []
    for at in range(0, count, 100):
        ids += [r.id or "" for r in await desk.remember(*(f"the locker {at + n} is free" for n in range(100)))]
    return ids


async def test_a_large_tenant_is_reconciled_page_by_page_and_a_pass_goes_on_after_a_crash(desk: Desk) -> None:
    ids = sorted(await fill(desk, 300))
    neighbour = replace(desk, tenant=TenantId(f"{desk.tenant} too"))
    kept = await neighbour.store("Likes tea")
    while await desk.indexer.relay(64):
        pass
    lost = [*ids[:3], *ids[-3:]]
    await desk.index.delete_memories(desk.tenant, lost)
    orphan = await neighbour.store("Likes milk")
    await desk.pool.execute("DELETE FROM memory.memories WHERE memory_id = $1", orphan)
    await desk.pool.execute("DELETE FROM memory.index_outbox")

    watched = Watched(desk)
    pass_ = ReconcilePass(Reconciler(desk.inventory, watched), wake=asyncio.Event())
    [begun] = await finish(desk, pass_, Work.RECONCILE, steps=1)
    assert begun == {"tenant": desk.tenant, "after": ids[PAGE_MEMORIES - 1]}
    looked_at = [ids_ for ids_ in watched.asked if ids_ and len(ids_) > 10]
    states = await finish(desk, pass_, Work.RECONCILE)
    looked_at = [ids_ for ids_ in watched.asked if ids_ and len(ids_) > 10]
    assert [id_ for page in looked_at for id_ in page] == ids, "each once, whoever did it"
    assert max(map(len, looked_at)) == PAGE_MEMORIES
    assert states[-1] == {}, "the next pass begins anew"

    waiting = {row["memory_id"] for row in await desk.pool.fetch("SELECT memory_id FROM memory.index_outbox")}
    assert waiting == {*lost, orphan}
    while await desk.indexer.relay(64):
        pass
    assert (await desk.indexed(), await neighbour.indexed()) == (set(ids), {kept})
    await finish(desk, pass_, Work.RECONCILE)
    assert await desk.pool.fetch("SELECT memory_id FROM memory.index_outbox") == [], "a second pass changes nothing"


async def old(desk: Desk, days: int = 40, *, but: str = "") -> None:
    """Let everything be unused and unchanged for so many days."""
    then = desk.clock() - timedelta(days=days)
    await desk.pool.execute(
        "UPDATE memory.memories SET used_at = $1, updated_at = $1 WHERE memory_id <> $2", then, but
    )


async def statuses(desk: Desk) -> dict[str, str]:
    rows = await desk.pool.fetch("SELECT memory_id, status FROM memory.memories WHERE layer = 'episodic'")
    return {row["memory_id"]: row["status"] for row in rows}


async def test_episodes_that_nobody_uses_are_consolidated_as_the_plan_said_and_no_others(desk: Desk) -> None:
    bo, team = desk.caller("bo"), desk.caller("ana", "team:a")
    mine = [await desk.episode(f"restarted the ledger {n}", subject="ledger") for n in range(6)]
    theirs = [await desk.episode(f"restarted the ledger {n}", subject="ledger", caller=bo) for n in range(5)]
    shared = [
        await desk.episode(f"restarted the ledger {n}", subject="ledger", caller=team, scopes=["team:a"])
        for n in range(5)
    ]
    few = [await desk.episode(f"fed cat {n}", subject="cat", scopes=["tenant"]) for n in range(4)]
    long = await desk.episode("restarted the ledger " + "again " * 200, subject="ledger")
    pass_ = ConsolidatePass(desk.consolidator, clock=desk.clock)
    assert (await desk.consolidate(dry_run=True, due=True)).groups == [], "all of it is of today"
    await finish(desk, pass_, Work.CONSOLIDATE)
    assert set((await statuses(desk)).values()) == {"active"}

    await old(desk, but=mine[5])
    plan = await desk.consolidate(dry_run=True, due=True)
    assert [set(group["sources"]) for group in plan.groups] == [set(mine[:5])], "of the caller's own, without today's"
    await finish(desk, pass_, Work.CONSOLIDATE)
    cold = {id_ for id_, status in (await statuses(desk)).items() if status == "cold"}
    assert cold == {*mine[:5], *theirs, *shared}
    assert not cold & {*few, long, mine[5]}

    summaries = await desk.pool.fetch(
        "SELECT m.*, ARRAY(SELECT s.source_id FROM memory.sources s WHERE s.memory_id = m.memory_id) AS sources"
        " FROM memory.memories m WHERE provenance_kind = 'consolidation' ORDER BY user_id, owner_scope"
    )
    told = [(row["user_id"], row["owner_scope"], list(row["scopes"]), set(row["sources"])) for row in summaries]
    assert told == [
        ("ana", "team:a", ["team:a"], set(shared)),
        ("ana", "user:ana", ["user:ana"], set(mine[:5])),
        ("bo", "user:bo", ["user:bo"], set(theirs)),
    ]
    assert plan.groups[0]["text"] == summaries[1]["text"]
    facts = await desk.pool.fetch("SELECT user_id, data FROM memory.events WHERE data ? 'sources'")
    assert sorted((row["user_id"], row["data"]["sources"]) for row in facts) == [("ana", 5), ("ana", 5), ("bo", 5)]
    assert "restarted the ledger 0 (ok)" in (await desk.search("restarted the ledger 0"))[0]

    before = await desk.pool.fetch("SELECT * FROM memory.memories ORDER BY memory_id")
    await finish(desk, pass_, Work.CONSOLIDATE)
    assert await desk.pool.fetch("SELECT * FROM memory.memories ORDER BY memory_id") == before


async def test_a_pass_of_consolidation_that_dies_between_two_owners_is_gone_on_with(desk: Desk) -> None:
    owners = [desk.caller(user) for user in ("ana", "bo", "cy")]
    for caller in owners:
        for n in range(5):
            await desk.episode(f"restarted the ledger {n}", subject="ledger", caller=caller)
    await old(desk)
    pass_ = ConsolidatePass(desk.consolidator, clock=desk.clock)
    states = await finish(desk, pass_, Work.CONSOLIDATE, steps=2)
    assert states[-1]["owner_scope"] == "user:ana"
    assert list((await statuses(desk)).values()).count("cold") == 5
    await finish(desk, pass_, Work.CONSOLIDATE)
    assert set((await statuses(desk)).values()) == {"cold"}
    made = await desk.pool.fetch("SELECT user_id FROM memory.memories WHERE layer = 'semantic' ORDER BY 1")
    assert [row["user_id"] for row in made] == ["ana", "bo", "cy"]


async def test_a_full_store_a_change_in_between_and_a_setting_of_zero_leave_episodes_as_they_are(desk: Desk) -> None:
    ids = [await desk.episode(f"restarted the ledger {n}", subject="ledger") for n in range(5)]
    await old(desk)
    never = replace(desk, consolidated_from=0)
    full = replace(desk, quotas=replace(AMPLE, user=Holding(rows=5, bytes=1 << 30)))
    assert (await never.consolidate(dry_run=True, due=True)).groups == []
    for other in (never, full):
        await finish(other, ConsolidatePass(other.consolidator, clock=other.clock), Work.CONSOLIDATE)
    [group] = await desk.consolidator.plan_due(desk.filter())
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=ids[0], text="restarted the mailer"))
    assert await desk.consolidator.apply_for_owner(group, await desk.lease(Work.CONSOLIDATE)) is None
    assert set((await statuses(desk)).values()) == {"active"}


FED = "UPDATE memory.memories SET text = 'fed the cat' WHERE memory_id = ANY ($1)"


def odd(n: int) -> str:
    """Return a text that has no word in common with any other."""
    return " ".join(f"{word}{n}" for word in ("heron", "mill", "brass", "lantern"))


@pytest.mark.parametrize("steps", [None, 2], ids=["in one go", "killed between two pages"])
async def test_every_quiet_episode_has_its_turn_behind_any_number_that_nothing_becomes_of(
    desk: Desk, steps: int | None
) -> None:
    """What a killed pass had looked at is not looked at again, even where something would become of it now."""
    desk = replace(desk, consolidated_together=4)
    first = [await desk.episode(odd(n)) for n in range(7)]
    related = [await desk.episode(f"restarted the ledger {n}") for n in range(3)]
    await desk.episode(odd(8))
    await old(desk)
    pass_ = ConsolidatePass(desk.consolidator, clock=desk.clock)
    if steps is not None:
        begun = (await finish(desk, pass_, Work.CONSOLIDATE, steps=steps))[-1]["begun"]
        assert begun["memory_id"] == first[3]
        await desk.pool.execute(FED, first[:4])
        await old(desk)
    await finish(desk, pass_, Work.CONSOLIDATE)
    assert {id_ for id_, status in (await statuses(desk)).items() if status == "cold"} == set(related)


async def test_a_request_passes_over_pages_that_nothing_becomes_of(desk: Desk) -> None:
    desk = replace(desk, consolidated_together=4)
    for n in range(8):
        await desk.episode(odd(n))
    related = [await desk.episode(f"restarted the ledger {n}") for n in range(3)]
    await old(desk)
    for due in (True, False):
        [group] = (await desk.consolidate(dry_run=True, due=due)).groups
        assert set(group["sources"]) == set(related)
