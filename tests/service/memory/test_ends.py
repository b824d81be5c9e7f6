"""An end that is removed is gone everywhere: in the store, in the index, and for what comes after it."""

from datetime import timedelta
from typing import Any

import pytest

from caisson.common.errors import Conflict, InvalidInput
from caisson.common.memories import PatchMemory, Provenance
from tests.support.memory_desk import Desk

GATE = "the gate code is 4711"
FACT: dict[str, Any] = {"subject": "gate", "attribute": "code"}


async def test_a_memory_without_its_expiry_is_told_after_it(desk: Desk) -> None:
    end = desk.clock() + timedelta(hours=1)
    id_ = await desk.store(GATE, expires_at=end)
    unchanged = await desk.correct(id_, importance=0.9)
    assert unchanged.expires_at == end, "what is not named stays"
    assert (await desk.correct(id_, removes=["expires_at"])).expires_at is None
    desk.clock.ahead = timedelta(hours=2)
    assert await desk.search("gate code") == [GATE]


async def test_a_memory_without_its_end_is_true_again(desk: Desk) -> None:
    end = desk.clock() + timedelta(hours=1)
    id_ = await desk.store(GATE, valid_to=end, **FACT)
    desk.clock.ahead = timedelta(hours=2)
    assert await desk.search("gate code") == []
    changed = await desk.correct(id_, removes=["valid_to"], text=f"{GATE} still")
    assert (changed.valid_to, changed.version) == (None, 2)
    assert await desk.search("gate code") == [f"{GATE} still"]


async def test_an_end_is_not_moved_into_the_fact_that_follows(desk: Desk) -> None:
    ends, begins = (desk.clock() + timedelta(days=days) for days in (1, 5))
    id_ = await desk.store(GATE, valid_to=ends, **FACT)
    follows = await desk.store("the gate code is 4712", valid_from=begins, expires_at=begins, **FACT)
    for change in ({"removes": ["valid_to"]}, {"valid_to": begins + timedelta(seconds=1)}):
        with pytest.raises(Conflict, match="another fact"):
            await desk.correct(id_, **change)
    assert (await desk.correct(id_, valid_to=begins)).valid_to == begins
    desk.clock.ahead = timedelta(days=6)
    assert (await desk.correct(id_, removes=["valid_to"])).valid_to is None, "what expired follows no more"
    assert await desk.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1 AND memory_id = $2", follows) == []


async def test_what_a_session_or_a_source_bounds_is_not_kept_for_good(desk: Desk) -> None:
    said = await desk.store(GATE, layer="session", provenance=Provenance(session_id="ses_1"))
    soon = desk.clock() + timedelta(days=1)
    for n, end in enumerate((None, soon, None)):
        await desk.episode(f"Bo opened the gate {n}", subject="gate", expires_at=end)
    [summary] = (await desk.consolidate()).created
    for longer in (soon.replace(year=soon.year + 1), desk.clock() + timedelta(days=31)):
        with pytest.raises(InvalidInput, match="30 days"):
            await desk.store(
                f"{GATE}!", layer="session", provenance=Provenance(session_id="ses_1"), expires_at=longer
            )
        with pytest.raises(InvalidInput, match="30 days"):
            await desk.correct(said, expires_at=longer)
    assert (await desk.correct(said, expires_at=soon)).expires_at == soon
    for id_ in (said, summary):
        with pytest.raises(InvalidInput):
            await desk.correct(id_, removes=["expires_at"])
    with pytest.raises(InvalidInput):
        await desk.correct(summary, expires_at=soon + timedelta(seconds=1))
    assert (await desk.get(summary)).expires_at == soon


def test_an_end_is_given_or_removed_and_nothing_else_is_removed(desk: Desk) -> None:
    known = {"caller": desk.caller(), "id": "mem_1"}
    for wrong in ({"removes": ["text"]}, {"removes": ["valid_to"], "valid_to": desk.clock()}):
        with pytest.raises(ValueError, match="valid_to"):
            PatchMemory.model_validate(known | wrong)
