"""Episodes become knowledge and stay; distillation goes on where it stopped."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from caisson.common.errors import NotFound, Unavailable
from caisson.common.memories import ListMemories, PatchMemory
from caisson.common.memory_upkeep import Distil
from caisson.memory.handlers.distilling import DistillingHandlers
from tests.support.memory_desk import Desk


async def test_a_group_never_crosses_owners_or_scopes(desk: Desk) -> None:
    bo = desk.caller("bo")
    for n in range(2):
        await desk.episode(f"restarted the ledger {n}", subject="ledger")
        await desk.episode(f"restarted the ledger {n}", subject="ledger", caller=bo)
        await desk.episode(f"restarted the ledger {n}", subject="ledger", scopes=["tenant"])
        await desk.episode(f"restarted the ledger {n}", subject="ledger", scopes=["tenant", "user:ana"])
    assert (await desk.consolidate()).groups == []
    await desk.episode("restarted the ledger 2", subject="ledger", scopes=["tenant"])
    [group] = (await desk.consolidate()).groups
    assert group["scopes"] == ["tenant"]


async def test_two_or_unrelated_episodes_are_no_knowledge(desk: Desk) -> None:
    for text in ("restarted the ledger", "restarted the ledger again", "baked bread", "saw a heron at dusk"):
        await desk.episode(text)
    assert (await desk.consolidate()).groups == []


async def test_a_summary_ends_with_its_first_source_and_replaces_no_statement(desk: Desk) -> None:
    stated = await desk.store("Ana's manager is Cy", subject="Ana", attribute="manager")
    soon = desk.clock().replace(year=desk.clock().year + 1)
    for n, end in enumerate((None, soon, None)):
        await desk.episode(f"Bo signed Ana's leave {n}", subject="Ana", attribute="manager", expires_at=end)
    [summary] = (await desk.consolidate()).created
    view = await desk.get(summary)
    assert (view.subject, view.attribute, view.expires_at) == ("Ana", None, soon)
    assert (await desk.get(stated)).status == "active"


async def test_a_corrected_episode_corrects_its_summary(desk: Desk) -> None:
    ids = [await desk.episode(f"the build took {n} minutes", subject="build") for n in range(3)]
    [summary] = (await desk.consolidate()).created
    await desk.remembering.correct(PatchMemory(caller=desk.caller(), id=ids[1], text="the build took 7 minutes"))
    assert (await desk.get(summary)).text.splitlines()[1] == "the build took 7 minutes (ok)"
    assert await desk.search("build 7 minutes") == [(await desk.get(summary)).text]


class Rewriter:
    """A model that answers as told, and may be away."""

    def __init__(self, *, drop: str = "drop me", away: bool = False) -> None:
        self.drop = drop
        self.away = away
        self.asked: list[str] = []

    async def reword(self, instruction: str, texts: Sequence[str]) -> list[str | None]:
        if self.away:
            raise Unavailable("the chat endpoint gave no answer")
        self.asked.append(instruction)
        return [None if self.drop in text else f"{text}!" for text in texts]


async def test_a_model_writes_the_summary_where_there_is_one(desk: Desk) -> None:
    smart = replace(desk, chat=Rewriter())
    for n in range(3):
        await smart.episode(f"the build took {n} minutes", subject="build")
    [summary] = (await smart.consolidate()).created
    assert (await smart.get(summary)).text.endswith("the build took 2 minutes (ok)!")


CANDIDATES = [
    *[f"The build of service {n} takes {n} minutes" for n in range(20)],
    *["Ana prefers tea", "ana prefers the tea", "Ana prefers tea."] * 5,
    "ok thanks",
    "The heron was seen at dusk",
]


async def test_candidates_become_few_evenly_over_topics_and_skipped_stages_are_told(desk: Desk) -> None:
    done = await desk.distilling.distil(Distil(caller=desk.caller(), candidates=CANDIDATES, target=3))
    assert done.complete
    assert len(done.selected) == 3
    assert "Ana prefers tea" in done.selected
    assert "The heron was seen at dusk" in done.selected, "a small topic has its turn"
    stages = {stage["stage"]: stage for stage in done.stages}
    assert list(stages) == [
        "admission",
        "synthesise",
        "lexical_merge",
        "semantic_clustering",
        "topic_balanced_selection",
        "refine",
    ]
    assert (stages["admission"]["in"], stages["admission"]["out"]) == (37, 36)
    assert (stages["lexical_merge"]["in"], stages["lexical_merge"]["out"]) == (36, 22)
    assert "no chat endpoint" in stages["synthesise"]["skipped"]
    assert "no chat endpoint" in stages["refine"]["skipped"]
    assert (await desk.reading.page(ListMemories(caller=desk.caller()))).items == [], "it selects, it stores nothing"


async def test_a_distillation_goes_on_after_each_slice_and_keeps_only_its_selection(desk: Desk) -> None:
    smart = replace(desk, chat=Rewriter())
    slices = DistillingHandlers(smart.jobs, smart.distiller, slice_s=1e-9)
    asked = [*CANDIDATES, "drop me"]
    step = await slices.distil(Distil(caller=smart.caller(), candidates=asked, target=4))
    calls = 1
    while not step.complete:
        step = await slices.distil(Distil(caller=smart.caller(), candidates=[], target=4, resume=step.job_id))
        calls += 1
    assert calls > 6
    assert len(step.selected) == 4
    assert all(text.endswith("!") for text in step.selected)
    kept = await smart.pool.fetch("SELECT text FROM memory.distil_texts WHERE job_id = $1", step.job_id)
    assert sorted(row["text"] for row in kept) == sorted(step.selected)
    with pytest.raises(NotFound):
        await slices.distil(Distil(caller=smart.caller("bo"), candidates=[], resume=step.job_id))


async def test_a_model_that_is_away_skips_its_stages_and_loses_nothing(desk: Desk) -> None:
    away = replace(desk, chat=Rewriter(away=True))
    done = await away.distilling.distil(Distil(caller=away.caller(), candidates=CANDIDATES, target=30))
    assert done.complete
    assert len(done.selected) == 22
    assert {stage["stage"] for stage in done.stages if "skipped" in stage} == {"synthesise", "refine"}
