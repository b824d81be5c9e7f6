"""A forgotten text stays away in other spelling, unless a person says it, or something of the owner's still does."""

import pytest

from caisson.common.errors import InvalidInput
from caisson.common.memories import OfUser, Provenance
from tests.support.memory_desk import Desk

SAID = "The guest code is 4711"
AGAIN = [
    "the guest code is 4711.",
    "THE GUEST CODE IS 4711!",
    "“The guest code”, is: 4711",
    "(The guest code is 4711.)",
]
OTHER = ["The guest code is -4711", "The guest code is 4,711", "The guest code is 4711#", "The guest code was 4711"]


async def test_a_forgotten_text_is_refused_in_any_punctuation_and_another_text_is_not(desk: Desk) -> None:
    await desk.delete(await desk.store(SAID))
    for text in (SAID, *AGAIN):
        [told] = await desk.remember(text)
        assert (told.status, (told.reason or "").partition(":")[0]) == ("rejected", "forgotten"), text
    for text in OTHER:
        await desk.store(text)
    bo = desk.caller("bo")
    await desk.store(AGAIN[0], caller=bo)
    id_ = await desk.store("The guest code is secret")
    with pytest.raises(InvalidInput):
        await desk.correct(id_, text=AGAIN[1])


async def test_every_spelling_comes_back_with_a_person_who_says_one(desk: Desk) -> None:
    for text in (SAID, AGAIN[0]):
        await desk.delete(await desk.store(text, provenance=Provenance(kind="person"), confirmations=1))
    [back] = await desk.remember(AGAIN[1], confirmations=1)
    assert back.status == "created"
    await desk.delete(await desk.store("The tea is green"))
    other = await desk.remember("the tea is green!")
    assert [told.status for told in other] == ["rejected"], "one text was lifted, not all"
    left = await desk.rows("SELECT 1 FROM memory.tombstones WHERE tenant_id = $1")
    assert len(left) == 1


async def test_what_another_memory_still_says_in_other_spelling_may_be_said_in_a_third(desk: Desk) -> None:
    moved = await desk.store(SAID, external_id="doc:1")
    await desk.store(AGAIN[1], external_id="doc:2")
    await desk.delete(moved)
    [restated] = await desk.remember(AGAIN[0], external_id="doc:2")
    assert restated.status == "superseded", "it is said all the time"
    assert (await desk.correct(restated.id or "", text=AGAIN[3])).text == AGAIN[3]
    [very] = await desk.remember(SAID, external_id="doc:3")
    assert very.status == "rejected", "the text itself was forgotten"
    await desk.delete(restated.id or "")
    [third] = await desk.remember(AGAIN[2], external_id="doc:3")
    assert third.status == "rejected", "nothing says it any more"


async def test_a_tombstone_of_before_keeps_its_text_away_and_no_other(desk: Desk) -> None:
    await desk.delete(await desk.store(SAID))
    await desk.rows("UPDATE memory.tombstones SET bare_hash = NULL WHERE tenant_id = $1")
    [very] = await desk.remember(f"  {SAID.upper()} ")
    assert very.status == "rejected"
    await desk.store(AGAIN[0])


async def test_every_text_of_many_memories_and_of_their_histories_is_buried(desk: Desk) -> None:
    texts = [f"the locker {n} is blue" for n in range(120)]
    await desk.remember(*texts[:60])
    last = await desk.store("the locker is old")
    await desk.correct(last, text=texts[60])
    await desk.remember(*texts[61:])
    [source] = await desk.rows("SELECT count(*) FROM memory.memories WHERE tenant_id = $1")
    receipt = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana", limit=200))
    assert (receipt.count, receipt.tombstones) == (source["count"], 121)
    refused = await desk.remember(*(f"{text}!" for text in (*texts[:90], "the locker is old")))
    assert {told.status for told in refused} == {"rejected"}
