"""A recall that was asked before, asked again after a change: it misses what changed at once, in every process."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from caisson.common.memories import ById, Caller, OfUser, PatchMemory, Provenance
from caisson.common.recalls import Search
from tests.support.memory_desk import Desk, WordEmbedder
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search

pytestmark = LOCAL_MODE_WARNINGS

QUERY = "what does Ana drink tea"
TEXT = "Ana drinks tea"

Change = Callable[[Desk, str, str], Awaitable[object]]


async def _delete(desk: Desk, id_: str, _: str) -> object:
    return await desk.forgetting.delete(ById(caller=member(desk), id=id_))


async def _delete_source(desk: Desk, _: str, source: str) -> object:
    return await desk.delete(source)


async def _erase(desk: Desk, _: str, __: str) -> object:
    return await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana"))


async def _supersede(desk: Desk, _: str, __: str) -> object:
    return await desk.store(
        "Ana has given it up", subject="Ana", attribute="drink", scopes=SCOPES, caller=member(desk)
    )


async def _expire_by_a_patch(desk: Desk, id_: str, _: str) -> object:
    past = desk.clock() - timedelta(seconds=1)
    return await desk.remembering.correct(PatchMemory(caller=member(desk), id=id_, expires_at=past))


async def _expire_by_the_clock(desk: Desk, _: str, __: str) -> object:
    desk.clock.ahead += timedelta(minutes=4)
    return None


async def _end_validity(desk: Desk, id_: str, _: str) -> object:
    end = desk.clock()
    return await desk.remembering.correct(PatchMemory(caller=member(desk), id=id_, valid_to=end))


async def _correct(desk: Desk, id_: str, _: str) -> object:
    return await desk.remembering.correct(PatchMemory(caller=member(desk), id=id_, text="Ana has given it up"))


async def _cool(desk: Desk, id_: str, _: str) -> object:
    cool = "UPDATE memory.memories SET status = 'cold' WHERE tenant_id = $1 AND memory_id = $2"
    return await desk.rows(cool, id_)


SCOPES = ["team:a", "user:ana"]
CHANGES: list[tuple[Change, str]] = [
    (_delete, "deleted"),
    (_delete_source, "deleted with its source"),
    (_erase, "erased with its user"),
    (_supersede, "superseded"),
    (_expire_by_a_patch, "expired by a patch"),
    (_expire_by_the_clock, "expired, and nothing wrote"),
    (_end_validity, "no longer true"),
    (_correct, "corrected"),
    (_cool, "gone cold"),
]


def member(desk: Desk, user: str = "ana") -> Caller:
    return desk.caller(user, "team:a")


@pytest.mark.parametrize(("change", "what"), CHANGES, ids=[what for _, what in CHANGES])
async def test_a_warm_recall_misses_what_changed_in_a_second_process_too(
    each_desk: Desk, change: Change, what: str
) -> None:
    """M18. Delete, erase, supersede, expire, delete the source: two services on one store miss the row at once."""
    first = each_desk
    second = Desk(pool=first.pool, index=first.index, embedder=WordEmbedder(), clock=first.clock, tenant=first.tenant)
    source = await first.episode("Ana said at breakfast what she likes")
    id_ = await first.store(
        TEXT,
        caller=member(first),
        scopes=SCOPES,
        subject="Ana",
        attribute="drink",
        provenance=Provenance(kind="run", run_id="run_1", source=source),
        expires_at=first.clock() + timedelta(minutes=3),
    )
    for desk in (first, second):
        for user in ("ana", "bo"):
            for _ in range(3):
                told = await desk.recalled(QUERY, caller=member(desk, user))
                assert TEXT in [hit.memory.text for hit in told.hits]
            assert told.diagnostics.cached is not desk.index.away
    await change(first, id_, source)
    for desk in (first, second):
        for user in ("ana", "bo"):
            assert TEXT not in await desk.search(QUERY, caller=member(desk, user)), what
            context = await desk.recall.context(Search(caller=member(desk, user), query=QUERY))
            assert TEXT not in context.text, what


async def test_a_memory_that_changes_its_scope_is_missed_at_once_where_it_was(each_desk: Desk) -> None:
    """M18. An object that is said anew for another scope leaves the recalls of those who had the old one."""
    first = each_desk
    second = Desk(pool=first.pool, index=first.index, embedder=WordEmbedder(), clock=first.clock, tenant=first.tenant)
    await first.store(TEXT, caller=member(first), scopes=SCOPES, external_id="drink")
    for desk in (first, second):
        for _ in range(2):
            assert await desk.search(QUERY, caller=member(desk, "bo")) == [TEXT]
    await first.remember(TEXT, external_id="drink", scopes=["user:ana"])
    for desk in (first, second):
        assert await desk.search(QUERY, caller=member(desk, "bo")) == []
        assert await desk.search(QUERY) == [TEXT]


async def test_a_warm_answer_over_http_misses_what_was_deleted(plane: MemoryPlane) -> None:
    """M18. The same through the gateway, which keeps no answer of its own, whatever key the caller repeats."""
    async with plane.asker(new_tenant()) as ana:
        id_ = await remember(ana, TEXT)
        again = {"Idempotency-Key": "the same question"}
        for path in ("search", "context", "search"):
            body = {"query": QUERY}
            assert TEXT in (await ana.post(f"/v1/memories/{path}", json=body, headers=again)).text
        await ana.delete(f"/v1/memories/{id_}")
        for path in ("search", "context"):
            assert TEXT not in (await ana.post(f"/v1/memories/{path}", json=body, headers=again)).text
        assert await search(ana, QUERY) == []
