"""The store is away: whoever asks is told so by a typed error that may be asked again, and no bug is reported."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from caisson.common.errors import Unavailable
from caisson.common.memories import ListMemories
from caisson.common.memory_upkeep import Distil, UsageOf
from caisson.common.postgres import connect_pool
from tests.support.memory_desk import Desk

ASKED: list[tuple[Callable[[Desk], Awaitable[object]], str]] = [
    (lambda away: away.get("mem_x"), "one memory"),
    (lambda away: away.reading.page(ListMemories(caller=away.caller())), "a list"),
    (lambda away: away.reading.usage(UsageOf(caller=away.caller())), "usage"),
    (lambda away: away.search("which port"), "a search"),
    (lambda away: away.receipt("job_x"), "a receipt"),
    (lambda away: away.consolidate(), "a consolidation"),
    (lambda away: away.distilling.distil(Distil(caller=away.caller(), candidates=["The port is 1"])), "distilling"),
    (lambda away: away.store("The port is 8080"), "a write"),
    (lambda away: away.outbox.backlog(), "the relay's backlog"),
]


@pytest.mark.parametrize(("ask", "what"), ASKED, ids=[what for _, what in ASKED])
async def test_it_is_told_that_the_database_does_not_answer(
    desk: Desk, postgres_url: str, ask: Callable[[Desk], Awaitable[object]], what: str
) -> None:
    gone = await connect_pool(postgres_url, application="tests")
    await gone.close()
    with pytest.raises(Unavailable, match="the database does not answer"):
        await ask(replace(desk, pool=gone))
