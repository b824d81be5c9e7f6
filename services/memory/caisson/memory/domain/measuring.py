"""What an arm of an evaluation is worth. Where nothing answers a question, being silent is the hit.

nDCG: Järvelin and Kekäläinen 2002, with gains of 0 and 1.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from caisson.memory.domain.question_sets import Question

DEPTH = 10
OVERALL = "overall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one arm told for one question, best first. `foreign` counts what the asker may not see."""

    question: Question
    told: tuple[str, ...]
    tokens: int
    foreign: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Means over questions; `foreign` is a sum."""

    questions: int
    hit_at_1: float
    hit_at_3: float
    ndcg_at_10: float
    injection_rate: float
    wrong_injection_rate: float
    tokens: float
    foreign: int


def measure(outcomes: Sequence[Outcome]) -> dict[str, Measures]:
    """Return the measures overall and by slice."""
    slices: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        slices[OVERALL].append(outcome)
        slices[outcome.question.slice].append(outcome)
    return {name: _measures(found) for name, found in slices.items()}


def is_wrong(outcome: Outcome) -> bool:
    """Whether something was told, and nothing of it answers the question."""
    return bool(outcome.told) and not set(outcome.told) & set(outcome.question.relevant)


def _measures(outcomes: Sequence[Outcome]) -> Measures:
    return Measures(
        questions=len(outcomes),
        hit_at_1=_mean([_hit(outcome, 1) for outcome in outcomes]),
        hit_at_3=_mean([_hit(outcome, 3) for outcome in outcomes]),
        ndcg_at_10=_mean([_ndcg(outcome) for outcome in outcomes]),
        injection_rate=_mean([float(bool(outcome.told)) for outcome in outcomes]),
        wrong_injection_rate=_mean([float(is_wrong(outcome)) for outcome in outcomes]),
        tokens=_mean([float(outcome.tokens) for outcome in outcomes]),
        foreign=sum(outcome.foreign for outcome in outcomes),
    )


def _hit(outcome: Outcome, depth: int) -> float:
    relevant = set(outcome.question.relevant)
    if not relevant:
        return float(not outcome.told)
    return float(bool(relevant & set(outcome.told[:depth])))


def _ndcg(outcome: Outcome) -> float:
    relevant = set(outcome.question.relevant)
    if not relevant:
        return float(not outcome.told)
    gained = sum(_discount(rank) for rank, told in enumerate(outcome.told[:DEPTH]) if told in relevant)
    return gained / sum(_discount(rank) for rank in range(min(len(relevant), DEPTH)))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 2)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
