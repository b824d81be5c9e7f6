"""Quotas hold exactly, under concurrency too, and never stop what adds nothing."""

import asyncio
from dataclasses import replace

import pytest

from caisson.common.errors import QuotaExceeded
from caisson.common.memories import PatchMemory
from caisson.memory.domain.quotas import Holding, Quotas
from tests.support.memory_desk import Desk

SMALL = Quotas(user=Holding(rows=3, bytes=1_000), tenant=Holding(rows=5, bytes=2_000))


@pytest.fixture
def tight(desk: Desk) -> Desk:
    return replace(desk, quotas=SMALL)


async def test_at_the_limit_an_edit_a_duplicate_and_a_newer_fact_work_and_a_deletion_frees(tight: Desk) -> None:
    fact = {"subject": "Ana", "attribute": "city"}
    [first, _, _] = await tight.remember("note 1", "note 2", "note 3")
    assert first.id is not None
    await tight.remembering.correct(PatchMemory(caller=tight.caller(), id=first.id, text="note 9"))
    assert [result.status for result in await tight.remember("note 2")] == ["duplicate_of"]
    await tight.delete(first.id)
    city = await tight.store("Oslo", subject=fact["subject"], attribute=fact["attribute"])
    with pytest.raises(QuotaExceeded):
        await tight.remember("note 4")
    [moved] = await tight.remember("Rome", subject=fact["subject"], attribute=fact["attribute"])
    assert (moved.status, moved.supersedes) == ("superseded", [city])


async def test_a_batch_over_the_limit_stores_nothing_of_it(tight: Desk) -> None:
    with pytest.raises(QuotaExceeded, match="0 are used, 4 more"):
        await tight.remember(*(f"note {n}" for n in range(4)))
    assert await tight.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1") == []


async def test_bytes_count_with_history_and_an_edit_may_not_grow_past_them(tight: Desk) -> None:
    id_ = await tight.store("x" * 990)
    with pytest.raises(QuotaExceeded, match="user's quota is 1000 bytes"):
        await tight.remembering.correct(PatchMemory(caller=tight.caller(), id=id_, text="x" * 1_100))
    assert len((await tight.get(id_)).text) == 990


async def test_usage_is_what_the_tables_hold_after_everything(desk: Desk) -> None:
    fact = {"subject": "Ana", "attribute": "city"}
    for city in ("Oslo", "Rome", "Bern"):
        await desk.store(city, subject=fact["subject"], attribute=fact["attribute"])
    for what in ("cello", "viola", "oboe"):
        await desk.episode(f"likes {what}", subject="music")
    [summary] = (await desk.consolidate()).created
    await desk.delete(summary)
    await desk.store("Likes tea", caller=desk.caller("bo"), scopes=["tenant"])
    counted = await desk.rows(
        "SELECT user_id, count(*) FILTER (WHERE status <> 'superseded') AS rows, sum(bytes)::bigint AS bytes"
        " FROM memory.memories WHERE tenant_id = $1 GROUP BY ROLLUP (user_id) ORDER BY user_id NULLS FIRST"
    )
    kept = await desk.rows("SELECT user_id, rows, bytes FROM memory.usage WHERE tenant_id = $1 ORDER BY user_id")
    assert [tuple(row) for row in kept] == [(row["user_id"] or "", row["rows"], row["bytes"]) for row in counted]


async def test_a_busy_tenant_leaves_the_database_to_the_others(desk: Desk) -> None:
    async with desk.pool.acquire() as connection, connection.transaction():
        await connection.execute("INSERT INTO memory.usage (tenant_id, user_id) VALUES ($1, '')", desk.tenant)
        stuck = [asyncio.create_task(desk.remember(f"note {n}")) for n in range(60)]
        other = Desk(pool=desk.pool, index=desk.index, embedder=desk.embedder, clock=desk.clock)
        await asyncio.wait_for(other.remember("Likes tea"), 10)
        assert not any(task.done() for task in stuck)
    await asyncio.gather(*stuck)
