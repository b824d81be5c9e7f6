"""What is away is told and comes back by itself; store and index never drift apart for good."""

import asyncio

import pytest

from caisson.common.errors import Unavailable
from caisson.common.memory_upkeep import Reconcile
from caisson.memory.domain.indexing import Point
from caisson.memory.domain.layers import Layer
from tests.support.memory_desk import Desk, Outage
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS

pytestmark = LOCAL_MODE_WARNINGS

TEXT = "the ledger service listens on port 8081"


async def test_a_dead_index_is_told_with_every_answer_until_it_is_back(desk: Desk, word_index: Outage) -> None:
    """M50. Full text serves and says why; zero hits are no failure and a failure is not zero hits; no restart."""
    await desk.store(TEXT)
    nothing = await desk.recalled("unheard of matters", on_degraded="fail")
    assert (nothing.hits, nothing.diagnostics.backend, nothing.diagnostics.degraded) == ([], "vector", [])
    word_index.away = True
    for query, hits in (("which port has the ledger", [TEXT]), ("unheard of, too", [])):
        told = await desk.recalled(query)
        assert [hit.memory.text for hit in told.hits] == hits
        assert (told.diagnostics.backend, told.diagnostics.degraded) == ("sql_bm25", ["vector: the index is away"])
        with pytest.raises(Unavailable, match="the index is away"):
            await desk.recalled(query, on_degraded="fail")
    meanwhile = await desk.store("the mail service listens on port 25")
    word_index.away = False
    told = await desk.recalled("which port has the ledger")
    assert (told.hits[0].memory.text, told.diagnostics.backend, told.diagnostics.degraded) == (TEXT, "vector", [])
    await catch_up(desk)
    assert meanwhile in await desk.indexed(), "what was written meanwhile is indexed afterwards"


async def test_the_index_that_fails_under_the_feet_of_a_search_is_told(desk: Desk, word_index: Outage) -> None:
    """M50. Searches that run while the index goes and comes are each answered whole or marked, never empty."""
    await desk.store(TEXT)

    async def flicker() -> None:
        for _ in range(20):
            word_index.away = not word_index.away
            await asyncio.sleep(0)

    answers = await asyncio.gather(*(desk.recalled(f"which port has the ledger {n}") for n in range(20)), flicker())
    for told in answers[:-1]:
        assert told is not None
        assert [hit.memory.text for hit in told.hits] == [TEXT]
        assert (told.diagnostics.backend == "sql_bm25") == bool(told.diagnostics.degraded)


async def test_the_store_comes_first_and_the_index_follows_once(desk: Desk, word_index: Outage) -> None:
    """M51. A write that ended between commit and upsert is found by terms at once and indexed by the next relay."""
    word_index.away = True
    id_ = await desk.store("Likes tea")
    word_index.away = False
    assert await desk.indexed() == set(), "the store came first"
    word_index.away = True
    assert await desk.search("likes tea") == ["Likes tea"], "what is committed is told"
    word_index.away = False
    successor = Desk(pool=desk.pool, index=desk.index, embedder=desk.embedder, clock=desk.clock, tenant=desk.tenant)
    await catch_up(successor)
    assert await desk.indexed() == {id_}
    assert await desk.rows("SELECT 1 FROM memory.index_outbox WHERE tenant_id = $1") == [], "and nothing twice"


async def test_reconciling_finds_what_is_missing_and_what_nobody_owns(desk: Desk) -> None:
    """M51. A point deleted by hand and one that no memory has are both found and mended; neither is ever told."""
    missing, whole = await desk.store("likes tea"), await desk.store("likes water")
    await desk.index.delete_memories(desk.tenant, [missing])
    [vector] = await desk.embedder.embed(["an orphan likes coffee"])
    orphan = Point(
        memory_id="mem_orphan",
        chunk=0,
        version=1,
        tenant=desk.tenant,
        scopes=frozenset({"user:ana"}),
        layer=Layer.SEMANTIC,
        valid_from=desk.clock(),
        valid_to=None,
        expires_at=None,
        text="an orphan likes coffee",
        dense=vector,
    )
    await desk.index.upsert([orphan])
    told = await desk.recalled("an orphan likes coffee")
    assert "mem_orphan" not in {hit.memory.id for hit in told.hits}
    assert told.diagnostics.mismatched == 1
    found = await desk.reconciling.reconcile(Reconcile(caller=desk.caller()))
    assert (found.checked, found.missing, found.orphaned, found.stale) == (2, 1, 1, 0)
    await catch_up(desk)
    assert await desk.indexed() == {missing, whole}
    again = await desk.reconciling.reconcile(Reconcile(caller=desk.caller()))
    assert (again.missing, again.orphaned, again.stale) == (0, 0, 0)


async def catch_up(desk: Desk) -> None:
    """Let the relay do what is waiting, now."""
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    while await desk.indexer.relay(64):
        pass
