"""Whoever changes something: what is another's answers like what is not there, and stays as it is."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.common.errors import CaissonError, Denied, NotFound
from caisson.common.memories import ById, Caller, ListMemories, OfUser, PatchMemory, Provenance
from caisson.common.memory_upkeep import Consolidate
from caisson.common.recalls import Feedback
from tests.support.memory_desk import Desk
from tests.support.memory_world import SCOPES, USERS, World, allowed_of, readable

UNKNOWN = "mem_" + "0" * 26
OWNED = "SELECT owner_scope FROM memory.memories WHERE tenant_id = $1 AND memory_id = $2"


async def _refusal(desk: Desk, caller: Caller, way: str, id_: str) -> CaissonError:
    """Try to change a memory, and return why that did not work."""
    patch = PatchMemory(caller=caller, id=id_, text="mine now", tags=["x"], status="active")
    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "patch": lambda: desk.remembering.correct(patch),
        "expect": lambda: desk.remembering.correct(PatchMemory(caller=caller, id=id_, expected_version=99)),
        "delete": lambda: desk.delete(id_, caller=caller),
        "feedback": lambda: desk.recall.feedback(Feedback(caller=caller, retrieval_id=id_, reward=1.0)),
    }
    with pytest.raises(CaissonError) as refused:
        await ways[way]()
    return refused.value


@given(
    tenant=st.sampled_from((0, 1, 2)),
    user=st.sampled_from(USERS),
    granted=st.lists(st.sampled_from((*SCOPES, "user:ana")), max_size=2),
    place=st.integers(0, 10_000),
    way=st.sampled_from(("patch", "expect", "delete", "feedback")),
)
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_anothers_memory_is_as_unknown_as_one_that_never_was_and_stays_as_it_is(
    world: World, tenant: int, user: str, granted: list[str], place: int, way: str
) -> None:
    desk = world.of(world.tenants[tenant])
    caller = desk.caller(user, *granted)
    stored = await world.ids()
    id_ = stored[place % len(stored)][1]
    if way == "feedback":
        id_ = (await desk.recalled("amber", caller=desk.caller(f"not {user}", *SCOPES))).retrieval_id
    [owner] = [row["owner_scope"] for row in await desk.rows(OWNED, id_)] or [None]
    if owner in allowed_of(caller):
        return
    before = await world.everything()
    refused, unknown = await _refusal(desk, caller, way, id_), await _refusal(desk, caller, way, UNKNOWN)
    assert isinstance(unknown, NotFound)
    if id_ in await readable(desk, caller):
        assert isinstance(refused, Denied), "it is shared with the caller, and not the caller's"
    else:
        assert (type(refused), refused.detail, refused.fields) == (type(unknown), unknown.detail, unknown.fields)
    assert await world.everything() == before


async def test_nobody_is_erased_or_handed_out_by_whom_may_not_act_for_it(world: World) -> None:
    before = await world.everything()
    for tenant in world.tenants:
        desk = world.of(tenant)
        for user in USERS:
            caller = desk.caller(f"{user}3", "team:a", "user:", "user:a", f"User:{user}", user)
            for ask in (desk.forgetting.erase_user, desk.reading.export):
                with pytest.raises(Denied):
                    await ask(OfUser(caller=caller, user_id=user))
    assert await world.everything() == before


async def test_an_erasure_goes_on_with_the_user_that_it_was_granted_for(desk: Desk) -> None:
    backend = desk.caller("backend", "user:eve", "user:ana")
    for user in ("ana", "eve"):
        for number in range(3):
            await desk.store(f"shelf {number} is for {user}", caller=desk.caller(user))
    begun = await desk.forgetting.erase_user(OfUser(caller=backend, user_id="ana", limit=1))
    with pytest.raises(NotFound):
        await desk.forgetting.erase_user(OfUser(caller=backend, user_id="eve", resume=begun.resume))
    ended = await desk.forgetting.erase_user(OfUser(caller=backend, user_id="ana", resume=begun.resume))
    assert (ended.count, ended.complete) == (3, True)
    assert len((await desk.reading.page(ListMemories(caller=desk.caller("eve")))).items) == 3


async def test_what_was_private_stays_private_in_the_history_of_what_is_shared(desk: Desk) -> None:
    bo = desk.caller("bo")
    words = [
        ("a private beginning", None),
        ("told to everybody", ["tenant", "user:ana"]),
        ("and private again", None),
    ]
    seen: list[list[str | None]] = []
    for text, scopes in words:
        id_ = await desk.store(text, scopes=scopes, external_id="note")
        if scopes:
            seen.append([entry.text for entry in (await desk.reading.history(ById(caller=bo, id=id_))).entries])
        else:
            with pytest.raises(NotFound):
                await desk.reading.history(ById(caller=bo, id=id_))
    assert seen == [["told to everybody"]]
    own = await desk.reading.history(ById(caller=desk.caller(), id=id_))
    assert [entry.text for entry in own.entries] == [text for text, _ in words]


async def test_a_memory_is_not_made_again_of_what_its_readers_may_not_read(desk: Desk) -> None:
    """What somebody calls a summary of another's memory follows that one only while it may read it."""
    bo = desk.caller("bo")
    note = await desk.store("the depot is open", scopes=["tenant", "user:ana"], external_id="note")
    taken = await desk.store("a copy", caller=bo, provenance=Provenance(kind="consolidation", source=note))
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=note, text="the depot is closed"))
    assert (await desk.get(taken, caller=bo)).text == "the depot is closed"
    await desk.store("the depot is mine alone", external_id="note")
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=note, text="the code is 4711"))
    told = await desk.get(taken, caller=bo)
    assert (told.text, told.sources) == ("the depot is closed", []), "nor is it told the id of what it came from"


async def test_ones_own_newer_fact_and_its_end_leave_anothers_episode_as_it_is(desk: Desk) -> None:
    bo = desk.caller("bo")
    episode = await desk.episode("the pump ran dry", scopes=["tenant", "user:ana"])
    fact: dict[str, Any] = {"subject": "pump", "attribute": "state"}
    for state in ("dry", "wet"):
        source = Provenance(source=episode)
        last = await desk.store(f"the pump is {state}", caller=bo, provenance=source, **fact)
    assert (await desk.get(episode)).status == "active", "Bo's fact was superseded, not Ana's episode"
    await desk.rows("UPDATE memory.memories SET status = 'cold' WHERE tenant_id = $1 AND memory_id = $2", episode)
    for one in (last, (await desk.reading.history(ById(caller=bo, id=last))).entries[0].memory_id):
        await desk.delete(one, caller=bo)
    assert (await desk.get(episode)).status == "cold"


async def test_a_receipt_names_no_memory_of_somebody_else(desk: Desk) -> None:
    """What was made of a memory goes with it, whosever it is; whose and what that was is not told."""
    note = await desk.store("the alarm code changed", scopes=["tenant", "user:ana"])
    derived = await desk.store("I keep the code", caller=desk.caller("bo"), provenance=Provenance(source=note))
    receipt = await desk.delete(note)
    assert (receipt.deleted, receipt.count) == ([note], 2)
    with pytest.raises(NotFound):
        await desk.get(derived, caller=desk.caller("bo"))


async def test_what_expired_stands_in_nobodys_way(desk: Desk) -> None:
    """It is neither told nor counted, so it can be no reason to refuse what takes its place."""
    soon = desk.clock().replace(year=desk.clock().year + 1)
    await desk.store("the gate is red", expires_at=soon, subject="gate", attribute="colour")
    for number in range(3):
        await desk.episode(f"gate {number} was painted", subject="gate", attribute="colour")
    other = await desk.store("the gate is blue", subject="other gate", attribute="colour")
    desk.clock.ahead += soon - desk.clock()
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=other, text="the gate is red"))
    assert len((await desk.consolidate()).created) == 1


async def test_a_successor_that_became_private_is_not_named(desk: Desk) -> None:
    shared: dict[str, Any] = {"scopes": ["tenant", "user:ana"], "subject": "lamp", "attribute": "colour"}
    old = await desk.store("the lamp is red", **shared)
    new = await desk.store("the lamp is blue", external_id="lamp", **shared)
    bo = desk.caller("bo")
    assert (await desk.get(old, caller=bo)).superseded_by == new
    await desk.store("the lamp is in the safe", external_id="lamp")
    assert (await desk.get(old, caller=bo)).superseded_by is None
    assert (await desk.get(old)).superseded_by == new
    told = await desk.reading.history(ById(caller=bo, id=old))
    assert {entry.memory_id for entry in told.entries} == {old}


async def test_what_a_session_recalled_is_an_echo_only_to_whom_may_see_it(desk: Desk) -> None:
    """Sessions are named by callers: another user in one of the same name learns nothing of what was told there."""
    text = "the vault opens at nine"
    id_ = await desk.store(text)
    assert (await desk.recalled("when does the vault open", session_id="ses_1")).hits
    repeated: dict[str, Any] = {"provenance": Provenance(kind="run", session_id="ses_1")}
    [own] = await desk.remember(f"{text}.", **repeated)
    assert (own.status, own.similar_to) == ("rejected", id_)
    [others] = await desk.remember(f"{text}.", caller=desk.caller("bo"), **repeated)
    assert (others.status, others.similar_to) == ("created", None)


async def test_nobody_consolidates_what_is_only_shared_with_it(desk: Desk) -> None:
    for what in ("cello", "viola", "oboe"):
        await desk.episode(f"likes {what}", subject="music", scopes=["tenant", "user:ana"])
    assert len((await desk.consolidate(dry_run=True)).groups) == 1
    asked = Consolidate(caller=desk.caller("bo"), dry_run=True)
    assert (await desk.consolidating.consolidate(asked)).groups == []
