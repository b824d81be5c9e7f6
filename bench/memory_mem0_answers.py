"""What mem0 recalls of the question set that `caisson memory eval` plays, beside what Caisson does.

mem0 is asked on the held-out half, once with its own threshold and once with one that was found on the other half by
the rule that finds Caisson's gate. Its caller gives the filters; what is outdated is stored with its last day.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.mem0 import Mem0, local_qdrant, mem0, scoped
from caisson.memory import trials
from caisson.memory.domain.calibrating import TARGET_HIT_RATE, Observation, Seen, calibrate
from caisson.memory.domain.evaluating import K
from caisson.memory.domain.measuring import OVERALL, Measures, Outcome, measure
from caisson.memory.domain.question_sets import ABSTENTION, CROSS_TENANT, Question, QuestionSet, Remembered
from caisson.memory.domain.rehearsing import principal_of
from caisson.memory.settings import EmbedderSettings

SILENT = (ABSTENTION, CROSS_TENANT)
ITS_OWN_THRESHOLD = 0.1

Slices = Mapping[str, Measures]


async def answers(folder: Path) -> list[Figure]:
    """Return the figures of both."""
    questions = trials.open_set(None)
    ours = await trials.evaluate(EmbedderSettings(), questions, target_hit_rate=TARGET_HIT_RATE)
    async with mem0(folder, local_qdrant(folder)) as other:
        await other.add([_memory(memory) for memory in questions.memories])
        learning, held_out = questions.halves()
        observations = [_observed(*seen) for seen in zip(learning, await _ask(other, learning, 0.0), strict=True)]
        found = calibrate(observations, target_hit_rate=TARGET_HIT_RATE).thresholds.dense
        theirs = {
            "mem0": await _measured(other, questions, held_out, ITS_OWN_THRESHOLD),
            "mem0_tuned": await _measured(other, questions, held_out, found),
        }
    arms = {"caisson": ours.arms["hybrid with gate"], "caisson_ungated": ours.arms["hybrid"]} | theirs
    return [figure for arm, slices in arms.items() for figure in _figures(arm, slices)]


def _figures(arm: str, slices: Slices) -> list[Figure]:
    answerable = {name for name in slices if name not in {OVERALL, *SILENT}}
    bar = 0 if arm == "caisson" else None
    shares = {
        "hit_at_1": slices[OVERALL].hit_at_1,
        "hit_at_3": slices[OVERALL].hit_at_3,
        "answerable_hit_at_1": _mean({name: slices[name].hit_at_1 for name in answerable}, slices),
        "answerable_hit_at_3": _mean({name: slices[name].hit_at_3 for name in answerable}, slices),
        "told_for_nothing": _mean({name: slices[name].wrong_injection_rate for name in SILENT}, slices),
    }
    figures = [
        Figure(name=f"memory_{arm}_{name}", value=share, unit="of questions") for name, share in shares.items()
    ]
    foreign = f"memory_{arm}_foreign_told"
    return [*figures, Figure(name=foreign, value=slices[OVERALL].foreign, unit="memories", bar=bar)]


def _mean(shares: Mapping[str, float], slices: Slices) -> float:
    count = sum(slices[name].questions for name in shares)
    return sum(share * slices[name].questions for name, share in shares.items()) / count


def _memory(memory: Remembered) -> dict[str, Any]:
    (scope,) = memory.scopes
    owner = {"agent_id": memory.tenant, "user_id": scope}
    outdated = {"expiration_date": memory.valid_to.date().isoformat()} if memory.valid_to else {}
    return {"text": memory.text, "metadata": {"known_as": memory.id}} | owner | outdated


async def _ask(other: Mem0, questions: Sequence[Question], threshold: float) -> list[list[dict[str, Any]]]:
    asked = [
        {
            "query": question.text,
            "top_k": K,
            "threshold": threshold,
            "filters": scoped(question.tenant, principal_of(question).allowed),
        }
        for question in questions
    ]
    _, found = await other.search(asked)
    return found


def _observed(question: Question, found: Sequence[Mapping[str, Any]]) -> Observation:
    seen = [Seen(memory_id=item["metadata"]["known_as"], cosine=item["score"], lexical=None) for item in found]
    return Observation(question=question, seen=tuple(seen))


async def _measured(other: Mem0, known: QuestionSet, questions: Sequence[Question], threshold: float) -> Slices:
    memories = {memory.id: memory for memory in known.memories}
    outcomes = []
    for question, found in zip(questions, await _ask(other, questions, threshold), strict=True):
        told = tuple(item["metadata"]["known_as"] for item in found)
        foreign = sum(not _may_see(question, memories[memory_id]) for memory_id in told)
        outcomes.append(Outcome(question=question, told=told, tokens=0, foreign=foreign))
    return measure(outcomes)


def _may_see(question: Question, memory: Remembered) -> bool:
    return memory.tenant == question.tenant and bool(principal_of(question).allowed & set(memory.scopes))
