"""The gate decides on a leg's own score, and its thresholds belong to one embedder and one question set."""

import pytest

from caisson.common.errors import Misconfigured
from caisson.memory.domain.gating import UNCALIBRATED, Calibration, Thresholds, choose, passes

AT = Thresholds(dense=0.5, lexical=0.6)
ROWS: list[tuple[float | None, float | None, bool, str]] = [
    (0.5, None, True, "near enough, to the threshold"),
    (0.49, None, False, "not near enough"),
    (0.1, 0.6, True, "says enough of the query"),
    (0.1, 0.59, False, "neither"),
    (None, 0.9, True, "found by terms alone"),
    (None, None, False, "no score of its own: a rank in a fusion is none"),
    (0.49, 0.59, False, "two near misses are no hit"),
]


@pytest.mark.parametrize(("cosine", "lexical", "through", "reason"), ROWS, ids=[row[3] for row in ROWS])
def test_a_memory_passes_by_either_leg(
    *, cosine: float | None, lexical: float | None, through: bool, reason: str
) -> None:
    assert passes(cosine=cosine, lexical=lexical, thresholds=AT) is through


MINE = Calibration(embedder="e" * 64, set_hash="s" * 64, thresholds=AT)
OTHER = Calibration(embedder="f" * 64, set_hash="s" * 64, thresholds=UNCALIBRATED)


def test_a_gate_that_was_never_calibrated_starts_from_what_was_measured_for_the_default_embedder() -> None:
    assert choose([], embedder="e" * 64, set_hash=None) == Thresholds(dense=0.22, lexical=0.6)


def test_the_calibration_of_the_embedder_in_use_is_chosen() -> None:
    assert choose([OTHER, MINE], embedder="e" * 64, set_hash=None) == AT
    assert choose([OTHER, MINE], embedder="e" * 64, set_hash="s" * 64) == AT


REFUSED: list[tuple[list[Calibration], str | None, str, str]] = [
    ([OTHER], None, "ffff.*eeee", "calibrated for another embedder: both digests are told"),
    ([MINE], "t" * 64, "ssss.*tttt", "calibrated on another set: both digests are told"),
    ([], "t" * 64, "none", "a set is asked for and nothing is calibrated"),
]


@pytest.mark.parametrize(("known", "wanted", "told", "reason"), REFUSED, ids=[row[3] for row in REFUSED])
def test_a_mismatch_refuses_to_start(known: list[Calibration], wanted: str | None, told: str, reason: str) -> None:
    with pytest.raises(Misconfigured, match=told):
        choose(known, embedder="e" * 64, set_hash=wanted)
