"""The index follows the store: work is replayed after a crash, drift is found, embedders are never mixed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from caisson.common.errors import InvalidInput
from caisson.common.ids import TenantId
from caisson.common.memories import NewMemory, PatchMemory
from caisson.common.memory_upkeep import Reconcile
from caisson.common.postgres import Pool, load_queries
from caisson.memory.adapters.indexer import Indexer
from caisson.memory.adapters.recent_embeddings import RecentEmbeddings
from caisson.memory.app import QUERIES_FILE
from caisson.memory.domain.indexing import Point, Vector
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.reconciling import Reconciler
from tests.support.eventually import eventually
from tests.support.memory_desk import Desk, Outage, WordEmbedder


async def test_work_of_a_relay_that_died_is_done_by_another(desk: Desk, word_index: Outage) -> None:
    word_index.away = True
    id_ = await desk.store("Likes tea")
    word_index.away = False
    assert len(await desk.outbox.lease_these(desk.tenant, [id_])) == 1
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    await desk.indexer.relay(64)
    assert await desk.indexed() == set(), "the lease is respected"
    await desk.outbox.release_all()
    await desk.indexer.relay(64)
    assert await desk.indexed() == {id_}


async def test_catching_up_does_not_wait_for_an_embedder_that_hangs_and_ends_later(
    desk: Desk, word_index: Outage
) -> None:
    answers = asyncio.Event()

    class Hanging(WordEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            await answers.wait()
            return await super().embed(texts)

    word_index.away = True
    id_ = await desk.store("Likes tea")
    word_index.away = False
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    indexer = Indexer(desk.outbox, RecentEmbeddings(Hanging()), desk.index, caught_up_within_s=0.05)
    await indexer.catch_up(desk.tenant, [id_])
    assert await desk.indexed() == set()
    answers.set()

    async def is_indexed() -> bool:
        return await desk.indexed() == {id_}

    await eventually(is_indexed)


async def test_long_texts_are_indexed_one_at_a_time_and_hold_up_no_short_one(desk: Desk, word_index: Outage) -> None:
    word_index.away = True
    long = [await desk.store(f"chapter {n} " + "of the long book " * 5_000) for n in range(2)]
    short = [await desk.store(f"Likes tea of kind {n}") for n in range(3)]
    word_index.away = False
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now(), leased_until = NULL")
    assert await desk.indexer.relay(64) == 3
    assert await desk.indexed() == set(short)
    assert await desk.indexer.relay(64) == 1
    assert await desk.indexed() == {long[0], *short}
    assert await desk.indexer.relay(64) == 1
    assert await desk.indexed() == {*long, *short}


async def test_a_relay_that_was_slow_writes_what_nobody_took_over_and_nothing_else(desk: Desk) -> None:
    kept, taken = await desk.store("Likes tea"), await desk.store("Likes coffee")
    await desk.index.delete_memories(desk.tenant, [kept, taken])
    await desk.inventory.enqueue(desk.tenant, {kept: 1, taken: 1})
    slow = await desk.outbox.lease_these(desk.tenant, [kept, taken])
    await desk.rows("UPDATE memory.index_outbox SET leased_until = now() - interval '1 s' WHERE tenant_id = $1")
    [due] = await desk.outbox.lease_these(desk.tenant, [taken])
    assert await desk.indexer._work(slow) == 1
    assert await desk.indexed() == {kept}
    assert await desk.indexer._work([due]) == 1
    assert await desk.indexed() == {kept, taken}


class Choking(WordEmbedder):
    """Refuses what is void, and has a bug about poison."""

    def chunks(self, text: str) -> list[str]:
        return text.split(", ")

    async def embed(self, texts):  # type: ignore[no-untyped-def]
        if any("void" in text for text in texts):
            raise InvalidInput("has no words", field="text")
        if any("poison" in text for text in texts):
            raise RuntimeError("a bug")
        return await super().embed(texts)


@pytest.mark.parametrize("poisoned", ["one poison", "one poison, one void"], ids=["at once", "after a refusal"])
async def test_one_memory_that_cannot_be_indexed_holds_up_no_other(
    desk: Desk, word_index: Outage, poisoned: str
) -> None:
    word_index.away = True
    ids = [await desk.store(text) for text in (poisoned, "one tea", "one coffee")]
    word_index.away = False
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    choking = replace(desk, embedder=Choking())
    await choking.indexer.relay(64)
    assert await desk.indexed() == set(ids[1:])
    [(memory_id, error)] = await desk.rows("SELECT memory_id, error FROM memory.index_outbox WHERE tenant_id = $1")
    assert (memory_id, error) == (ids[0], "RuntimeError")
    await desk.pool.execute("DELETE FROM memory.memories WHERE memory_id = $1", ids[0])


async def test_what_cannot_be_replaced_is_tried_once_and_left_to_the_relay(desk: Desk) -> None:
    id_ = await desk.store("one poison")
    await desk.inventory.enqueue(desk.tenant, {id_: 1})
    assert not await replace(desk, embedder=Choking()).indexer.replace(desk.tenant, [id_])
    [row] = await desk.rows("SELECT attempts FROM memory.index_outbox WHERE tenant_id = $1")
    assert row["attempts"] == 1
    assert await desk.indexer.replace(desk.tenant, [id_])


async def test_reconciling_finds_a_missing_an_orphaned_and_a_stale_memory_and_one_with_too_many_points(
    desk: Desk,
) -> None:
    missing, stale, swollen, whole = [
        await desk.store(f"likes {what}") for what in ("tea", "coffee", "milk", "water")
    ]
    await desk.index.delete_memories(desk.tenant, [missing])
    await desk.index.upsert([await _point(desk, "mem_orphan", 0), await _point(desk, swollen, 1)])
    await desk.pool.execute("UPDATE memory.memories SET version = 7 WHERE memory_id = $1", stale)
    await desk.pool.execute("DELETE FROM memory.index_outbox WHERE memory_id = $1", stale)
    assert await desk.search("an orphan likes tea") != ["an orphan likes tea"], "the store is asked about every hit"

    found = await desk.reconciling.reconcile(Reconcile(caller=desk.caller()))
    assert (found.checked, found.missing, found.orphaned, found.stale) == (4, 1, 1, 2)
    await desk.indexer.relay(64)
    held = sorted([(memory_id, version) async for _, memory_id, version in desk.index.stored(desk.tenant)])
    assert held == sorted([(missing, 1), (stale, 7), (swollen, 1), (whole, 1)])
    again = await desk.reconciling.reconcile(Reconcile(caller=desk.caller()))
    assert (again.missing, again.orphaned, again.stale) == (0, 0, 0)


async def _point(desk: Desk, memory_id: str, chunk: int) -> Point:
    """Return a point that the store knows nothing of."""
    text = "an orphan likes tea"
    return Point(
        memory_id=memory_id,
        chunk=chunk,
        version=1,
        tenant=desk.tenant,
        scopes=frozenset({"user:ana"}),
        layer=Layer.SEMANTIC,
        valid_from=desk.clock(),
        valid_to=None,
        expires_at=None,
        text=text,
        dense=(await desk.embedder.embed([text]))[0],
    )


async def test_what_changes_while_reconciling_looks_is_no_drift_and_keeps_its_points(desk: Desk) -> None:
    deleted, corrected = await desk.store("likes tea"), await desk.store("likes coffee")
    added: list[str] = []

    class Changing:
        """The index, with memories changed and indexed right after it was first read."""

        async def stored(
            self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
        ) -> AsyncIterator[tuple[str, str, int]]:
            for row in [row async for row in desk.index.stored(tenant, memory_ids)]:
                yield row
            if not added:
                added.append(await desk.store("likes water"))
                await desk.delete(deleted)
                await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=corrected, text="likes milk"))

    reconciler = Reconciler(desk.inventory, Changing())
    found = [drift async for _, drift in reconciler.tenant(desk.tenant)]
    found += [drift async for drift in reconciler.strangers(desk.tenant)]
    assert [drift.kinds for drift in found if drift.kinds] == []
    assert await desk.rows("SELECT 1 FROM memory.index_outbox WHERE tenant_id = $1") == []
    assert await desk.indexed() == {corrected, *added}


async def test_a_read_never_leaves_the_gate_out(memory_pool: Pool) -> None:
    """Statements that tell a memory's text to a reader stand behind the one predicate."""
    queries = load_queries(QUERIES_FILE)
    telling = [
        "read_memory",
        "list_memories",
        "confirm",
        "search_lexemes",
        "read_history",
        "export_owned",
        "active_episodes",
        "quiet_episodes",
        "injected_texts",
        "standing",
        "facts_around",
    ]
    for name in telling:
        sql = getattr(queries, name).sql
        assert any(f"memory.{gate}(" in sql for gate in ("readable", "visible", "named")), name
        assert "FROM memory.memories" not in sql, name


async def test_every_statement_is_one_that_the_schema_takes(memory_pool: Pool) -> None:
    queries = load_queries(QUERIES_FILE)
    async with memory_pool.acquire() as connection:
        for name in queries.available_queries:
            if not name.endswith("_cursor"):
                await connection.prepare(getattr(queries, name).sql)


async def test_writers_and_the_relay_of_one_tenant_never_lock_each_other_out(desk: Desk) -> None:
    """Facts that replace each other touch several memories a write; the relay settles the same ones meanwhile."""

    async def write(number: int) -> None:
        texts = [f"fact {number % 3} is now {number} of {n}" for n in range(6)]
        memories = [
            NewMemory(text=text, subject="s", attribute=str((number + n) % 6)) for n, text in enumerate(texts)
        ]
        await desk.remember(*memories)

    async def relay() -> None:
        for _ in range(20):
            await desk.indexer.relay(7)

    await asyncio.gather(relay(), relay(), *(write(number) for number in range(24)))
    while await desk.indexer.relay(64):
        pass
    active = await desk.rows("SELECT memory_id FROM memory.memories WHERE tenant_id = $1 AND status = 'active'")
    assert len(active) == 6
    assert {row["memory_id"] for row in active} <= await desk.indexed()
    assert await desk.rows("SELECT 1 FROM memory.index_outbox WHERE tenant_id = $1") == []
