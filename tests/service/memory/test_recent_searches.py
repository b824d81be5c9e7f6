"""The same question again, before and after each kind of change: what is told is what a search would find now."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from caisson.common.memories import NewMemory, OfUser, PatchMemory, Remember
from caisson.common.postgres import load_queries
from caisson.common.recalls import Diagnostics
from caisson.memory.adapters.postgres.reading import PostgresReading
from caisson.memory.app import QUERIES_FILE
from caisson.memory.handlers.callers import filter_of
from tests.support.memory_desk import Desk, Outage

QUERY = "where is the spare key"
TEXT = "the spare key is under the blue pot"


async def asked(desk: Desk) -> tuple[list[str], Diagnostics]:
    recalled = await desk.recalled(QUERY)
    return [hit.memory.text for hit in recalled.hits], recalled.diagnostics


async def known(desk: Desk) -> None:
    """Have the asker answered once: a search is kept where nothing changed since the answer before."""
    await desk.recalled("something else")


async def test_the_second_asking_neither_embeds_nor_searches(desk: Desk) -> None:
    await desk.store(TEXT)
    await known(desk)
    first, happened = await asked(desk)
    assert not happened.cached
    desk.embedder.embedded.clear()
    again, told = await asked(desk)
    assert again == first == [TEXT]
    assert told == happened.model_copy(update={"cached": True})
    assert desk.embedder.embedded == []


async def test_another_user_with_the_same_question_searches_for_itself(desk: Desk) -> None:
    await desk.store(TEXT, scopes=["tenant"])
    await known(desk)
    await asked(desk)
    other = await desk.recalled(QUERY, caller=desk.caller("bo"))
    assert not other.diagnostics.cached


async def _delete(desk: Desk, id_: str) -> None:
    await desk.delete(id_)


async def _erase(desk: Desk, _: str) -> None:
    await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id=desk.user))


async def _supersede(desk: Desk, _: str) -> None:
    await desk.store("nobody knows where it went", subject="spare key", attribute="place")


async def _expire(desk: Desk, _: str) -> None:
    desk.clock.ahead += timedelta(seconds=50)


async def _correct(desk: Desk, id_: str) -> None:
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=id_, text="no one has seen it since"))


CHANGES: list[tuple[Callable[[Desk, str], Awaitable[None]], str]] = [
    (_delete, "it is deleted"),
    (_erase, "its user is erased"),
    (_supersede, "a newer fact takes its place"),
    (_expire, "it expires, and nobody sweeps"),
    (_correct, "it is corrected"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES, ids=[reason for _, reason in CHANGES])
async def test_a_change_shows_at_once_here_and_in_another_replica(
    desk: Desk, change: Callable[[Desk, str], Awaitable[None]], reason: str
) -> None:
    """Two services over one store: each has asked, one is told of the change."""
    other = replace(desk)
    expires_at = desk.clock() + timedelta(seconds=40)
    id_ = await desk.store(TEXT, subject="spare key", attribute="place", expires_at=expires_at)
    for replica in (desk, other):
        await known(replica)
        assert (await asked(replica))[0] == [TEXT]
        assert (await asked(replica))[1].cached
    await change(desk, id_)
    for replica in (desk, other):
        texts, happened = await asked(replica)
        assert TEXT not in texts, reason
        assert not happened.cached


async def test_what_comes_shows_at_once(desk: Desk) -> None:
    """Written later, in force later, and indexed later: a kept search hides none of it."""
    await desk.store(TEXT)
    coming = "the spare key is in the red pot from then on"
    await asked(desk)
    await desk.store(coming, valid_from=desk.clock() + timedelta(seconds=30))
    await known(desk)
    assert (await asked(desk))[0] == [TEXT]
    assert (await asked(desk))[1].cached
    desk.clock.ahead += timedelta(seconds=31)
    assert sorted((await asked(desk))[0]) == sorted([TEXT, coming])


async def test_what_the_index_takes_up_late_shows_then(desk: Desk, word_index: Outage) -> None:
    await desk.store(TEXT)
    late = "the spare key has a spare key"
    word_index.away = True
    await desk.store(late)
    word_index.away = False
    await known(desk)
    assert (await asked(desk))[0] == [TEXT]
    assert (await asked(desk))[1].cached
    await desk.indexer.relay(100)
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now() WHERE tenant_id = $1", desk.tenant)
    await desk.indexer.relay(100)
    assert sorted((await asked(desk))[0]) == sorted([TEXT, late])


async def test_an_answer_for_want_of_a_part_is_not_kept(desk: Desk, word_index: Outage) -> None:
    await desk.store(TEXT)
    word_index.away = True
    assert (await asked(desk))[1].degraded
    word_index.away = False
    assert not (await asked(desk))[1].cached
    assert (await asked(desk))[1].cached


async def test_the_first_search_after_a_change_is_not_kept(desk: Desk) -> None:
    """It may have begun before the change: the epoch moved since the asker's last answer, nobody knows when."""
    await desk.store(TEXT)
    await known(desk)
    assert (await asked(desk))[1].cached is False
    await desk.store("the spare key has a twin")
    assert [(await asked(desk))[1].cached for _ in range(2)] == [False, True]
    await desk.store("so has the twin")
    await desk.recalled("a first question after the change")
    assert [(await asked(desk))[1].cached for _ in range(2)] == [False, True]


async def test_of_what_others_have_to_come_a_hundred_are_looked_at(desk: Desk) -> None:
    """A kept search ends when the last of these comes, at the latest; one of the asker's own before that ends it."""
    now, others = desk.clock(), desk.caller("bo")
    coming = [NewMemory(text=f"note {n}", valid_from=now + timedelta(seconds=n)) for n in range(1, 131)]
    await desk.remembering.remember(Remember(caller=others, memories=coming[:99]))
    mine = filter_of(desk.caller(), now)
    store = PostgresReading(desk.pool, load_queries(QUERIES_FILE))
    assert (await store.confirm([], mine)).epoch.until is None
    await desk.remembering.remember(Remember(caller=others, memories=coming[99:]))
    assert (await store.confirm([], mine)).epoch.until == now + timedelta(seconds=100)
    await desk.store("my own", valid_from=now + timedelta(seconds=90))
    assert (await store.confirm([], mine)).epoch.until == now + timedelta(seconds=90)
