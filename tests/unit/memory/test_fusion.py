"""Fusing legs: ranks decide, weights share, memories answer once, and no engine's order of equals shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.memory.domain.fusion import Leg, best_of_each, fuse, joined, wider


def leg(*ids: str, weight: float = 1) -> Leg:
    return Leg(best={id_: 1 - rank / 100 for rank, id_ in enumerate(ids)}, weight=weight)


ORDERS = [
    (leg("a", "b", weight=3), leg("b", "c"), ["b", "a", "c"], "found by both beats found by one"),
    (leg("a", "b", weight=3), leg("c", "d"), ["a", "b", "c", "d"], "three to one for the dense leg"),
    (leg("a", weight=3), None, ["a"], "one leg alone"),
    (None, leg("a", "b"), ["a", "b"], "the other alone"),
    (leg(weight=3), leg("a"), ["a"], "a leg that found nothing"),
    (leg("a", "b", weight=0), leg("b"), ["b", "a"], "a leg without weight still tells its scores"),
    (None, None, [], "no leg at all"),
]


@pytest.mark.parametrize(("dense", "lexical", "order", "why"), ORDERS, ids=[row[3] for row in ORDERS])
def test_the_order_of_the_fusion(dense: Leg | None, lexical: Leg | None, order: list[str], why: str) -> None:
    fused = fuse(dense, lexical, sparse_terms=1)
    assert [candidate.memory_id for candidate in fused.found] == order, why
    assert fused.legs == tuple(name for name, ran in (("dense", dense), ("sparse", lexical)) if ran)


def test_scores_are_one_over_weighted_rank_and_constant() -> None:
    (first,) = fuse(leg("a", weight=3), leg("a"), sparse_terms=1).found
    assert first.fused == pytest.approx(1 / (1 / 3 + 1) + 1 / (1 + 1))
    assert (first.cosine, first.lexical) == (1, 1)
    (far,) = fuse(Leg(best={"a": 1.0004}, weight=3), None, sparse_terms=0).found
    assert far.cosine == 1, "half precision does not leave the range"


@given(*[st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from((0.2, 0.4, 0.6, 0.8)))] * 2)
def test_legs_that_were_searched_apart_are_fused_as_together(
    dense: dict[str, float], lexical: dict[str, float]
) -> None:
    legs = [Leg(best=best_of_each(leg.items()), weight=weight) for leg, weight in ((dense, 3), (lexical, 1))]
    apart = fuse(None, legs[1], sparse_terms=2), fuse(legs[0], None, sparse_terms=0)
    assert joined(*apart) == fuse(*legs, sparse_terms=2)
    assert joined(apart[0]) == apart[0]


def test_chunks_answer_by_the_best_and_equal_scores_by_id() -> None:
    assert list(best_of_each([("b", 0.9), ("a", 0.9), ("b", 0.5), ("c", 0.95)]).items()) == [
        ("c", 0.95),
        ("a", 0.9),
        ("b", 0.9),
    ]


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(-1, 1, width=16)), max_size=40),
    st.lists(st.integers(0, 2), min_size=40, max_size=40),
)
def test_the_same_is_found_whether_one_shard_holds_it_or_three(
    chunks: list[tuple[str, float]], shards: list[int]
) -> None:
    parts = [[chunk for chunk, shard in zip(chunks, shards, strict=False) if shard == n] for n in range(3)]
    merged = [best for part in parts for best in best_of_each(part).items()]
    assert list(best_of_each(merged).items()) == list(best_of_each(chunks).items())


WIDENINGS = [
    ({"asked": 10, "chunks": 10, "memories": 10}, None, "enough memories"),
    ({"asked": 10, "chunks": 7, "memories": 2}, None, "no more chunks"),
    ({"asked": 10, "chunks": 10, "memories": 2}, 40, "few memories filled it"),
    ({"asked": 4_000, "chunks": 4_000, "memories": 2}, 8_192, "bounded"),
    ({"asked": 8_192, "chunks": 8_192, "memories": 2}, None, "and at the bound it ends"),
]


@pytest.mark.parametrize(("seen", "following", "why"), WIDENINGS, ids=[row[2] for row in WIDENINGS])
def test_asking_for_more_chunks(seen: dict[str, int], following: int | None, why: str) -> None:
    assert wider(limit=10, **seen) == following, why
