"""The gate is found on questions with known answers: enough hits, few wrong answers, then most right decisions."""

import pytest

from caisson.memory.domain.calibrating import Observation, Seen, TargetOutOfReach, attempt, calibrate
from caisson.memory.domain.gating import Thresholds, passes
from caisson.memory.domain.question_sets import ABSTENTION, Question


def observed(
    relevant: float | None, wrong: float, *, slice_: str = "easy", lexical: float | None = None
) -> Observation:
    """A question that found its memory (if it has one) at a cosine, and another one at another."""
    has = relevant is not None
    question = Question(id="q", slice=slice_, tenant="t", user="u", text="which", relevant=["right"] if has else [])
    right = (Seen(memory_id="right", cosine=relevant, lexical=lexical),) if has else ()
    return Observation(question=question, seen=(*right, Seen(memory_id="wrong", cosine=wrong, lexical=None)))


ANSWERABLE = [observed(0.3 + step / 20, 0.2) for step in range(10)]
SILENT = [observed(None, 0.1 + step / 50, slice_=ABSTENTION) for step in range(10)]


def test_separable_questions_are_separated() -> None:
    trial = calibrate(ANSWERABLE + SILENT, target_hit_rate=0.45)
    assert (trial.hit_rate, trial.wrong_rate, trial.right_rate) == (1.0, 0.0, 1.0)
    assert 0.28 < trial.thresholds.dense <= 0.3


def test_wrong_answers_are_given_up_for_hits_only_down_to_the_target() -> None:
    loud = [observed(None, 0.52, slice_=ABSTENTION) for _ in range(10)]
    strict = calibrate(ANSWERABLE + loud, target_hit_rate=0.45)
    assert strict.wrong_rate == 0.0
    assert strict.hit_rate == pytest.approx(0.5)
    lax = calibrate(ANSWERABLE + loud, target_hit_rate=0.8)
    assert lax.hit_rate >= 0.8
    assert lax.wrong_rate == 1.0


def test_terms_let_through_what_likeness_does_not() -> None:
    far = [observed(0.1, 0.05, lexical=1.0) for _ in range(10)]
    trial = calibrate(far + SILENT, target_hit_rate=0.45)
    assert (trial.hit_rate, trial.wrong_rate) == (1.0, 0.0)
    assert trial.thresholds.lexical <= 1.0


def test_of_equal_gates_the_stricter_one_is_taken() -> None:
    trial = calibrate(ANSWERABLE + SILENT, target_hit_rate=0.45)
    laxer = Thresholds(dense=trial.thresholds.dense - 0.01, lexical=trial.thresholds.lexical)
    assert attempt(ANSWERABLE + SILENT, laxer).right_rate <= trial.right_rate
    assert not passes(cosine=None, lexical=1.0, thresholds=trial.thresholds), "a leg that adds nothing is closed"


def test_a_target_that_no_gate_reaches_is_told_with_what_can_be_reached() -> None:
    lost = [Observation(question=item.question, seen=()) for item in ANSWERABLE[:6]]
    with pytest.raises(TargetOutOfReach, match="the most is 40%"):
        calibrate(lost + ANSWERABLE[6:], target_hit_rate=0.9)
