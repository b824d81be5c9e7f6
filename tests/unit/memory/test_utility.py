"""Utility is learned from rewards alone, is bounded, and sways an order that similarity makes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.memory.domain.utility import SWAY, learn, rank, score, similarity
from tests.support.memory_records import found

UNIT = st.floats(min_value=-1, max_value=1)
NEWER = datetime(2026, 5, 1, tzinfo=UTC)


@given(q=UNIT, reward=UNIT, shared_by=st.integers(min_value=1, max_value=100))
def test_a_reward_moves_utility_towards_it_and_never_past_it_or_its_limits(
    q: float, reward: float, shared_by: int
) -> None:
    learned = learn(q, reward=reward, shared_by=shared_by)
    assert -1 <= learned <= 1
    assert min(q, reward) - 1e-12 <= learned <= max(q, reward) + 1e-12


def test_credit_is_split_over_what_was_told() -> None:
    assert learn(0.0, reward=1.0, shared_by=1) == pytest.approx(0.1)
    assert learn(0.0, reward=1.0, shared_by=4) == pytest.approx(0.025)
    assert learn(0.5, reward=1.0, shared_by=10) > 0.5, "a good recall never costs a good memory anything"


def test_a_thousand_rewards_stay_within_the_bound() -> None:
    q = 0.0
    for _ in range(1_000):
        q = learn(q, reward=1.0, shared_by=1)
    swayed = score(found(similarity=0.5, q=q))
    assert swayed / 0.5 <= 1 + SWAY + 1e-9


def test_a_useful_memory_moves_up_among_the_similar_and_not_past_the_much_nearer() -> None:
    useful = found(similarity=0.50, q=1.0, memory_id="useful")
    similar = found(similarity=0.52, memory_id="similar")
    nearer = found(similarity=0.70, memory_id="nearer")
    order = [item.memory.memory_id for _, item in rank([similar, useful, nearer])]
    assert order == ["nearer", "useful", "similar"]


def test_nothing_outranks_an_exact_match() -> None:
    exact = found(similarity=0.9, q=-1.0, memory_id="exact", is_exact=True)
    loved = found(similarity=1.0, q=1.0, memory_id="loved", created_at=NEWER)
    ranked = rank([loved, exact])
    assert [item.memory.memory_id for _, item in ranked] == ["exact", "loved"]
    assert [value for value, _ in ranked] == [1.0, 0.995]


def test_of_equals_the_newer_comes_first() -> None:
    old, new = found(similarity=0.5, memory_id="old"), found(similarity=0.5, memory_id="new", created_at=NEWER)
    assert [item.memory.memory_id for _, item in rank([old, new])] == ["new", "old"]


@given(similarity=st.floats(min_value=0, max_value=1), q=UNIT)
def test_a_score_is_between_0_and_1(similarity: float, q: float) -> None:
    assert 0 <= score(found(similarity=similarity, q=q)) <= 1


ROWS: list[tuple[float | None, float | None, float, str]] = [
    (1.0, 1.0, 1.0, "the same text"),
    (0.8, 0.0, 0.6, "near by meaning alone: three parts of four"),
    (0.8, None, 0.6, "not found by its terms"),
    (None, 0.7, 0.7, "no dense leg: the lexical score stands alone"),
    (-0.2, 1.0, 0.25, "a cosine below 0 takes nothing away"),
]


@pytest.mark.parametrize(("cosine", "lexical", "blend", "reason"), ROWS, ids=[row[3] for row in ROWS])
def test_similarity_blends_the_legs(cosine: float | None, lexical: float | None, blend: float, reason: str) -> None:
    assert similarity(cosine=cosine, lexical=lexical) == pytest.approx(blend)
