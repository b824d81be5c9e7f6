"""A newer fact takes the place of the older one, and neither is lost."""

from datetime import timedelta
from typing import Any

from caisson.common.memories import ById, Provenance
from caisson.common.recalls import Search
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS

pytestmark = LOCAL_MODE_WARNINGS

OPINION: dict[str, Any] = {"subject": "olives", "attribute": "opinion"}
MANAGER: dict[str, Any] = {"subject": "team", "attribute": "manager"}


async def test_a_contradiction_supersedes_and_both_stand_in_the_history(desk: Desk) -> None:
    """M33. After "likes" and "hates" the current memory hates, the other is superseded, and the history has both."""
    old = await desk.store("likes olives", **OPINION)
    between = desk.clock()
    [new] = await desk.remember("hates olives", **OPINION)
    assert (new.status, new.supersedes) == ("superseded", [old])
    assert await desk.search("olives") == ["hates olives"]
    assert await desk.search("olives", as_of=between) == ["likes olives"]
    history = await desk.reading.history(ById(caller=desk.caller(), id=new.id or ""))
    assert [(entry.change, entry.text) for entry in history.entries] == [
        ("remembered", "likes olives"),
        ("superseded", "likes olives"),
        ("remembered", "hates olives"),
    ]
    believed = await desk.reading.history(ById(caller=desk.caller(), id=new.id or "", as_of=between))
    assert [entry.text for entry in believed.entries] == ["likes olives"]
    assert ((await desk.get(old)).status, (await desk.get(old)).superseded_by) == ("superseded", new.id)


async def test_what_is_not_said_to_be_one_fact_is_kept_twice(desk: Desk) -> None:
    """M33. Without subject and attribute nobody says that they contradict: both are stored, and none is dropped."""
    await desk.store("Ana likes olives")
    await desk.store("Ana hates olives")
    assert set(await desk.search("olives")) == {"Ana likes olives", "Ana hates olives"}


async def test_search_and_context_show_the_fact_in_force(each_desk: Desk) -> None:
    """M34. After Ana and then Bo only Bo is told, and as of the time between only Ana, on every engine."""
    await each_desk.store("the manager is Ana", **MANAGER)
    between = each_desk.clock()
    each_desk.clock.ahead += timedelta(days=1)
    await each_desk.remember("the manager is Bo", **MANAGER)
    for as_of, told, untold in ((None, "Bo", "Ana"), (between, "Ana", "Bo")):
        assert await each_desk.search("who is the manager", as_of=as_of) == [f"the manager is {told}"]
        request = Search(caller=each_desk.caller(), query="who is the manager", as_of=as_of)
        context = (await each_desk.recall.context(request)).text
        assert told in context
        assert untold not in context


async def test_a_superseded_value_does_not_return_through_its_episode(each_desk: Desk) -> None:
    """M35. The episode that a superseded fact came from still says the old value; a context has the new one only."""
    episode = await each_desk.episode("Ana said that her manager is Bo")
    said = Provenance(kind="run", run_id="run_1", source=episode)
    await each_desk.store("Ana's manager is Bo", subject="Ana", attribute="manager", provenance=said)
    await each_desk.store("Ana's manager is Cy", subject="Ana", attribute="manager")
    context = await each_desk.recall.context(Search(caller=each_desk.caller(), query="Ana's manager"))
    assert "Cy" in context.text
    assert "Bo" not in context.text
    kept = await each_desk.get(episode)
    assert (kept.status, kept.text) == ("cold", "Ana said that her manager is Bo"), "kept, and out of recall"
