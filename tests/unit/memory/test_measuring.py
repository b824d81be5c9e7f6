"""What an arm is worth: silence is the hit where nothing answers, and order counts."""

import pytest

from caisson.memory.domain.measuring import OVERALL, Measures, Outcome, measure
from caisson.memory.domain.question_sets import Question


def outcome(relevant: list[str], *told: str, slice_: str = "easy", foreign: int = 0) -> Outcome:
    question = Question(id="q", slice=slice_, tenant="t", user="u", text="which", relevant=relevant)
    return Outcome(question=question, told=told, tokens=10 * len(told), foreign=foreign)


ROWS: list[tuple[Outcome, tuple[float, float, float, float, float], str]] = [
    (outcome(["a"], "a", "b"), (1, 1, 1, 1, 0), "first"),
    (outcome(["a"], "b", "c", "a"), (0, 1, 0.5, 1, 0), "third: half of the gain"),
    (outcome(["a"], "b", "c", "d", "a"), (0, 0, 0.431, 1, 0), "fourth"),
    (outcome(["a"]), (0, 0, 0, 0, 0), "silent where something answers"),
    (outcome(["a"], "b"), (0, 0, 0, 1, 1), "told only what does not answer"),
    (outcome([]), (1, 1, 1, 0, 0), "silent where nothing answers"),
    (outcome([], "b"), (0, 0, 0, 1, 1), "told something where nothing answers"),
    (outcome(["a", "b"], "b", "a"), (1, 1, 1, 1, 0), "both of two, in either order"),
]


@pytest.mark.parametrize(("one", "wanted", "reason"), ROWS, ids=[row[2] for row in ROWS])
def test_one_outcome_is_worth(one: Outcome, wanted: tuple[float, float, float, float, float], reason: str) -> None:
    found = measure([one])[OVERALL]
    seen = (found.hit_at_1, found.hit_at_3, found.ndcg_at_10, found.injection_rate, found.wrong_injection_rate)
    assert seen == pytest.approx(wanted, abs=1e-3)


def test_means_are_taken_overall_and_by_slice_and_foreign_memories_add_up() -> None:
    found = measure(
        [
            outcome(["a"], "a"),
            outcome(["a"], "b", foreign=1, slice_="hard"),
            outcome([], slice_="hard"),
            outcome(["a"], "a", "c", foreign=1),
        ]
    )
    assert set(found) == {OVERALL, "easy", "hard"}
    assert found[OVERALL] == Measures(
        questions=4,
        hit_at_1=0.75,
        hit_at_3=0.75,
        ndcg_at_10=0.75,
        injection_rate=0.75,
        wrong_injection_rate=0.25,
        tokens=10.0,
        foreign=2,
    )
    assert (found["hard"].hit_at_1, found["hard"].foreign) == (0.5, 1)
