"""Finding the gate's thresholds on questions with known answers.

Of the gates that let the right memory through for the target share of the answerable questions, and that tell
something for at most a small share of those that nothing answers, the one that decides most questions right; among
equals the stricter one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caisson.common.errors import Conflict
from caisson.memory.domain.gating import Thresholds, passes
from caisson.memory.domain.question_sets import ABSTENTION, Question

TARGET_HIT_RATE = 0.45
WRONG_LIMIT = 0.025
"""Half of the 5 % that the gate may be wrong on questions that it has not seen."""

_DENSE = (*(step / 100 for step in range(10, 91)), 1.0)
_LEXICAL = (0.25, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.75, 0.8, 1.0, 1.01)
"""The last ones close a leg's way through: nothing is nearer than the same text, and no text says more than all."""


class TargetOutOfReach(Conflict):
    """No gate lets the target share through: the memories are not found at all."""

    code = "target_out_of_reach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One memory that a question found without a gate."""

    memory_id: str
    cosine: float | None
    lexical: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A question and everything that it found."""

    question: Question
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a gate does to a set of observations, as shares of the questions that each is about."""

    thresholds: Thresholds
    hit_rate: float
    wrong_rate: float
    right_rate: float


def calibrate(observations: Sequence[Observation], *, target_hit_rate: float) -> Trial:
    """Return the best gate; raise TargetOutOfReach with the highest reachable rate where there is none."""
    trials = [attempt(observations, thresholds) for thresholds in _grid()]
    reaching = [trial for trial in trials if trial.hit_rate >= target_hit_rate]
    if not reaching:
        best = max(trial.hit_rate for trial in trials)
        raise TargetOutOfReach(f"no gate reaches a hit rate of {target_hit_rate:.0%}; the most is {best:.0%}")
    return min(reaching, key=_badness)


def attempt(observations: Sequence[Observation], thresholds: Thresholds) -> Trial:
    """Return what a gate does."""
    answerable = [item for item in observations if item.question.relevant]
    silent = [item for item in observations if item.question.slice == ABSTENTION]
    through = {id(item): _through(item, thresholds) for item in observations}
    hits = [bool(through[id(item)] & set(item.question.relevant)) for item in answerable]
    quiet = [not through[id(item)] for item in observations if not item.question.relevant]
    wrong = [bool(through[id(item)]) for item in silent]
    return Trial(
        thresholds=thresholds,
        hit_rate=_share(hits),
        wrong_rate=_share(wrong),
        right_rate=_share(hits + quiet),
    )


def _through(observation: Observation, thresholds: Thresholds) -> set[str]:
    return {
        seen.memory_id
        for seen in observation.seen
        if passes(cosine=seen.cosine, lexical=seen.lexical, thresholds=thresholds)
    }


def _badness(trial: Trial) -> tuple[float, float, float, float]:
    thresholds = trial.thresholds
    return max(trial.wrong_rate, WRONG_LIMIT), -trial.right_rate, -thresholds.dense, -thresholds.lexical


def _grid() -> Iterator[Thresholds]:
    for dense in _DENSE:
        for lexical in _LEXICAL:
            yield Thresholds(dense=dense, lexical=lexical)


def _share(held: Sequence[bool]) -> float:
    return sum(held) / len(held) if held else 0.0
