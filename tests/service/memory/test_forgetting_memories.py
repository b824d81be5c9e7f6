"""Forgetting reaches every copy: tables, points, caches, and the files of the index."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY

from caisson.common.envelope import Envelope
from caisson.common.errors import Conflict, Denied, NotFound
from caisson.common.ids import TenantId
from caisson.common.memories import OfUser, PatchMemory, Provenance
from caisson.common.memory_upkeep import Distil
from caisson.common.postgres import load_queries
from caisson.memory.adapters.postgres.jobs import PostgresJobs
from caisson.memory.app import QUERIES_FILE
from caisson.memory.domain.jobs import JobKind
from caisson.memory.handlers.callers import principal_of
from tests.support.memory_desk import Desk, Outage
from tests.support.tables import tables_with

CANARY = "qzx7391"
PEOPLE = ("ana", "ben", "cleo")


async def test_deleting_a_summary_takes_the_episodes_that_nothing_else_uses(desk: Desk) -> None:
    episodes = [await desk.episode(f"likes {what}", subject="music") for what in ("cello", "viola", "oboe")]
    [summary] = (await desk.consolidate()).created
    receipt = await desk.delete(summary)
    assert set(receipt.deleted) == {summary, *episodes}
    assert receipt.vectors == 1, "the episodes were cold and had no points"
    assert await desk.indexed() == set()


async def test_a_fact_said_by_itself_stays_when_what_was_made_from_it_goes(desk: Desk) -> None:
    fact = await desk.store("Ana's manager is Bo")
    derived = await desk.store("Ask Bo for Ana's leave", provenance=Provenance(kind="run", run_id="r", source=fact))
    assert (await desk.delete(derived)).deleted == [derived]
    derived = await desk.store("Bo signs Ana's leave", provenance=Provenance(kind="run", run_id="r", source=fact))
    assert set((await desk.delete(fact)).deleted) == {fact, derived}


async def test_only_its_owner_deletes_or_changes_a_shared_memory(desk: Desk) -> None:
    id_ = await desk.store("The office is in Oslo", scopes=["tenant", "user:ana"])
    bo = desk.caller("bo")
    assert (await desk.get(id_, caller=bo)).text == "The office is in Oslo"
    with pytest.raises(Denied):
        await desk.delete(id_, caller=bo)
    with pytest.raises(Denied):
        await desk.remembering.correct(PatchMemory(caller=bo, id=id_, text="The office is in Rome"))


async def test_an_erasure_goes_on_where_it_stopped(desk: Desk) -> None:
    await desk.remember(*(f"Ana's note number {n}" for n in range(25)))
    calls = 0
    resume: str | None = None
    while True:
        asked = OfUser(caller=desk.caller(), user_id="ana", limit=10, resume=resume)
        receipt = await desk.forgetting.erase_user(asked)
        calls += 1
        if receipt.complete:
            break
        resume = receipt.resume
    assert (calls, receipt.count) == (3, 25)
    again = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana", resume=resume))
    assert (again.complete, again.count) == (True, 25), "the receipt is kept"


async def test_an_erasure_counts_what_it_deleted_once_although_the_index_is_away(
    desk: Desk, word_index: Outage
) -> None:
    await desk.remember(*(f"Ana's note number {n}" for n in range(25)))
    before = REGISTRY.get_sample_value("caisson_memory_forgotten_total") or 0
    word_index.away = True
    asked = OfUser(caller=desk.caller(), user_id="ana", limit=10)
    resume = (await desk.forgetting.erase_user(asked)).resume
    await desk.forgetting.erase_user(asked.model_copy(update={"resume": resume}))
    word_index.away = False
    assert (await desk.forgetting.erase_user(asked.model_copy(update={"resume": resume}))).complete
    assert REGISTRY.get_sample_value("caisson_memory_forgotten_total") == before + 25


async def test_an_erasure_whose_process_died_goes_on_as_soon_as_the_next_one_has_started(desk: Desk) -> None:
    await desk.store("Ana's note")
    jobs = PostgresJobs(desk.pool, load_queries(QUERIES_FILE))
    principal = principal_of(desk.caller())
    job = await jobs.open(JobKind.ERASE_USER, principal, {"owner": "user:ana", "left": []})
    asked = OfUser(caller=desk.caller(), user_id="ana", resume=job.job_id)
    with pytest.raises(Conflict):
        await desk.forgetting.erase_user(asked)
    await jobs.release_all()
    receipt = await desk.forgetting.erase_user(asked)
    assert (receipt.complete, receipt.count) == (True, 1)
    with pytest.raises(Conflict):
        await jobs.save(job)


async def test_a_complete_erasure_covers_what_a_process_deleted_and_died_before_it_was_out_of_the_index(
    desk: Desk,
) -> None:
    deleted = await desk.store("Ana's first note")
    await desk.store("Ana's second note")
    await desk.pool.execute("DELETE FROM memory.memories WHERE memory_id = $1", deleted)
    later = "UPDATE memory.index_outbox SET not_before = now() + interval '5 minutes' WHERE memory_id = $1"
    await desk.pool.execute(later, deleted)
    assert deleted in await desk.indexed()
    receipt = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana"))
    assert receipt.complete
    assert await desk.indexed() == set()


async def test_nobody_erases_or_exports_for_another(desk: Desk) -> None:
    for act in (desk.forgetting.erase_user, desk.reading.export):
        with pytest.raises(Denied, match="user:bo"):
            await act(OfUser(caller=desk.caller("ana", "user:b", "user:bob"), user_id="bo"))


async def test_an_export_holds_everything_of_a_user_in_pages(desk: Desk) -> None:
    fact: dict[str, Any] = {"subject": "Ana", "attribute": "city"}
    old, new = await desk.store("Oslo", **fact), await desk.store("Rome", **fact)
    for what in ("cello", "viola", "oboe"):
        await desk.episode(f"likes {what}", subject="music")
    await desk.consolidate()
    await desk.store("Bo's", caller=desk.caller("bo"))
    found: dict[str, str] = {}
    resume = None
    while True:
        page = await desk.reading.export(OfUser(caller=desk.caller(), user_id="ana", limit=2, resume=resume))
        found |= {item.id: item.status for item in page.items}
        resume = page.resume
        if resume is None:
            break
    assert len(found) == 6
    assert (found[old], found[new]) == ("superseded", "active")
    assert sorted(found.values()) == ["active", "active", "cold", "cold", "cold", "superseded"]


async def test_a_deletion_without_the_index_says_so_and_the_relay_ends_it(desk: Desk, word_index: Outage) -> None:
    id_ = await desk.store("Likes tea")
    word_index.away = True
    receipt = await desk.delete(id_)
    word_index.away = False
    assert (receipt.deleted, receipt.complete) == ([id_], False)
    assert await desk.search("tea") == [], "the store is asked about every hit"
    assert await desk.receipt(receipt.id) == receipt, "asked again before the relay came"
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now()")
    await desk.indexer.relay(64)
    assert await desk.indexed() == set()
    assert await desk.receipt(receipt.id) == receipt.model_copy(update={"complete": True})
    assert (await desk.receipt(receipt.id)).complete, "and it stays so"


class LastSeen(Outage):
    """The index, to which the next step of a deletion is on its way for ever."""

    def __init__(self, index: Outage) -> None:
        super().__init__(index)
        self.reached = asyncio.Event()

    async def delete_memories(self, *_: object) -> None:
        self.reached.set()
        await asyncio.Event().wait()


async def die(desk: Desk, act: Callable[[Desk], Coroutine[Any, Any, object]]) -> None:
    """Delete something, and come as far as the commit."""
    index = LastSeen(desk.index)
    dying = asyncio.create_task(act(replace(desk, index=index)))
    await index.reached.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


async def test_a_deletion_that_dies_before_its_answer_has_a_receipt_which_completes_by_itself(desk: Desk) -> None:
    id_ = await desk.store("Likes tea")
    await die(desk, lambda dying: dying.delete(id_))
    [(job_id,)] = await desk.rows("SELECT job_id FROM memory.jobs WHERE tenant_id = $1")
    receipt = await desk.receipt(id_)
    assert (receipt.id, receipt.deleted, receipt.complete) == (job_id, [id_], False)
    await desk.indexer.relay(64)
    assert await desk.receipt(id_) == await desk.receipt(job_id) == receipt.model_copy(update={"complete": True})
    with pytest.raises(NotFound, match="no such receipt"):
        await desk.receipt(id_, caller=desk.caller("bo"))


async def test_an_erasure_that_dies_after_a_page_has_counted_it(desk: Desk) -> None:
    await desk.remember(*(f"Ana's note number {n}" for n in range(25)))
    asked = OfUser(caller=desk.caller(), user_id="ana", limit=10)
    await die(desk, lambda dying: dying.forgetting.erase_user(asked))
    [(job_id,)] = await desk.rows("SELECT job_id FROM memory.jobs WHERE tenant_id = $1")
    receipt = await desk.receipt(job_id)
    assert (receipt.count, receipt.complete, receipt.resume) == (10, False, job_id)
    await desk.jobs.release_all()
    for count, complete in ((20, False), (25, True)):
        told = await desk.forgetting.erase_user(asked.model_copy(update={"resume": job_id}))
        assert (told.count, told.complete) == (count, complete)
    assert await desk.indexed() == set()


async def test_an_erasure_that_another_call_goes_on_with_deletes_nothing_more(desk: Desk) -> None:
    await desk.store("Ana's note")
    principal = principal_of(desk.caller())
    job = await desk.jobs.open(JobKind.ERASE_USER, principal, {"owner": "user:ana", "left": []})
    await desk.jobs.release_all()
    await desk.jobs.resume(JobKind.ERASE_USER, principal, job.job_id)
    with pytest.raises(Conflict, match="granted to another"):
        await desk.forgetting._forgetting.forget_owned(principal, job, 10)
    assert await desk.search("note") == ["Ana's note"]


async def test_a_deletion_whose_receipt_cannot_be_kept_deletes_nothing(desk: Desk) -> None:
    id_ = await desk.store("Likes tea")
    refused = f"tenant_id <> '{desk.tenant}'"
    await desk.pool.execute(f"ALTER TABLE memory.jobs ADD CONSTRAINT refuses CHECK ({refused}) NOT VALID")
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await desk.delete(id_)
    finally:
        await desk.pool.execute("ALTER TABLE memory.jobs DROP CONSTRAINT refuses")
    assert (await desk.get(id_)).text == "Likes tea"


async def test_a_receipt_is_told_to_whom_it_was_given_and_is_unknown_to_others(desk: Desk) -> None:
    single = await desk.delete(await desk.store("Likes tea"))
    erased = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana"))
    distilled = await desk.distilling.distil(Distil(caller=desk.caller(), candidates=["Likes tea"]))
    assert await desk.receipt(single.id) == single
    assert (await desk.receipt(erased.id)).count == erased.count
    elsewhere = replace(desk, tenant=TenantId(f"{desk.tenant} too"))
    for asked in (
        desk.receipt(single.id, caller=desk.caller("bo")),
        desk.receipt(single.id, caller=desk.caller("bo", "user:ana")),
        elsewhere.receipt(single.id),
        desk.receipt("job_00000000000000000000000000"),
        desk.receipt(distilled.job_id),
    ):
        with pytest.raises(NotFound, match="no such receipt"):
            await asked


async def test_a_relay_in_flight_cannot_bring_a_deleted_point_back(desk: Desk) -> None:
    id_ = await desk.store("Likes tea")
    await desk.inventory.enqueue(desk.tenant, {id_: 1})
    [due] = await desk.outbox.lease_these(desk.tenant, [id_])
    deletion = asyncio.create_task(desk.delete(id_))
    await asyncio.wait([deletion], timeout=0.3)
    assert not deletion.done(), "the receipt waits for the relay that holds the memory"
    await desk.indexer._work([due])
    receipt = await deletion
    assert receipt.complete
    assert await desk.indexed() == set()


async def test_a_relay_whose_lease_lapsed_cannot_bring_a_deleted_point_back_either(desk: Desk) -> None:
    id_ = await desk.store("Likes tea")
    await desk.inventory.enqueue(desk.tenant, {id_: 1})
    [due] = await desk.outbox.lease_these(desk.tenant, [id_])
    await desk.rows("UPDATE memory.index_outbox SET leased_until = now() - interval '1 s' WHERE tenant_id = $1")
    assert (await desk.delete(id_)).complete
    assert await desk.indexer._work([due]) == 0
    assert await desk.indexed() == set()


async def test_the_end_of_a_session_takes_its_memories_and_no_others(desk: Desk) -> None:
    for session in ("ses_1", "ses_2"):
        provenance = Provenance(kind="run", run_id="run_1", session_id=session)
        await desk.store("Working on the release", layer="session", provenance=provenance)
    kept = await desk.store("Likes tea", provenance=Provenance(session_id="ses_1"))
    await end(desk, "ses_1")
    rows = await desk.rows("SELECT memory_id, session_id FROM memory.memories WHERE tenant_id = $1")
    assert {row["session_id"] for row in rows if row["memory_id"] != kept} == {"ses_2"}


async def test_what_a_session_said_is_nowhere_after_its_end_and_cannot_come_back(desk: Desk) -> None:
    said = Provenance(kind="run", run_id="run_1", session_id="ses_1")
    whose: dict[str, Any] = {"layer": "session", "provenance": said}
    text = f"canary-{CANARY} is the release's name"
    id_ = await desk.store(text, **whose)
    about = Provenance(kind="person", source=id_)
    made = await desk.store("The release has a name", provenance=about)
    assert text in await desk.search("what is the release's name", session_id="ses_1")
    desk.index.away = True
    await end(desk, "ses_1")
    desk.index.away = False
    assert await desk.search("what is the release's name", session_id="ses_1") == []
    with pytest.raises(NotFound):
        await desk.get(id_)
    with pytest.raises(NotFound):
        await desk.get(made)
    await desk.indexer.relay(64)
    assert await desk.indexed() == set()
    assert await tables_with(desk.pool, id_) == ["memory.events"], "as an id among facts that are to be told"
    recalls = "SELECT count(*) FROM memory.retrievals WHERE tenant_id = $1 AND session_id = 'ses_1'"
    await end(desk, "ses_1")
    assert (await desk.rows(recalls))[0][0] == 0

    [late] = await desk.remember(text, **whose)
    assert (late.status, late.reason) == ("rejected", "session ended: nothing more is remembered for it")
    [elsewhere] = await desk.remember(text, layer="session", provenance=Provenance(session_id="ses_2"))
    [for_good] = await desk.remember(text, provenance=said, layer="episodic", outcome="ok")
    assert (elsewhere.status, for_good.status) == ("created", "created"), "no tombstone; other layers go on"
    other = desk.caller().model_copy(update={"tenant_id": f"{desk.tenant} next door"})
    [foreign] = await desk.remember(text, caller=other, **whose)
    assert foreign.status == "created", "an id of another tenant's session"


async def test_a_long_session_of_several_people_ends_page_by_page(desk: Desk) -> None:
    whose: dict[str, Any] = {"layer": "session", "provenance": Provenance(session_id="ses_1")}
    for user in PEOPLE:
        texts = [f"{user} noted fact number {number} of the day" for number in range(100)]
        await desk.remember(*texts, caller=desk.caller(user), **whose)
    kept = await desk.store("Likes tea")
    await end(desk, "ses_1")
    assert await desk.indexed() == {kept}
    assert [row[0] for row in await desk.rows("SELECT memory_id FROM memory.memories WHERE tenant_id = $1")] == [kept]
    facts = await desk.rows(
        "SELECT user_id, data FROM memory.events WHERE tenant_id = $1 AND type = 'memory.forgotten'"
    )
    told = {user: sum(len(row["data"]["ids"]) for row in facts if row["user_id"] == user) for user in PEOPLE}
    assert told == dict.fromkeys(PEOPLE, 100)


async def end(desk: Desk, session: str) -> None:
    fact = Envelope(
        id=f"{session}:deleted",
        type="session.deleted",
        tenant_id=desk.tenant,
        user_id="ana",
        session_id=session,
        occurred_at=desk.clock(),
        data={"removed": {}},
    )
    await desk.forgetting.end_session(fact)
