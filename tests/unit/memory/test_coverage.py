"""The lexical score: the share of a query's terms that a passage says, in any script and at any length."""

from time import process_time

import pytest

from caisson.memory.domain.coverage import PASSAGE_CHARS, Coverage
from caisson.memory.domain.terms import query_terms

ROWS = [
    ("port of ledger", "The ledger service listens on port 8081", 1.0, "every term"),
    ("ledger backup hour", "The ledger service listens on port 8081", 1 / 3, "one of three"),
    ("weather tomorrow", "The ledger service listens on port 8081", 0.0, "none"),
    ("CN-A10293", "Part CN-A10293 lies in aisle 7", 1.0, "an id, whole and in parts"),
    ("café", "The cafe opens at nine", 1.0, "accents fold"),
    ("会议室", "上海办公室的会议室需要提前一天预订", 1.0, "ideographs, in pairs"),
    ("東京", "京都の朝礼", 0.0, "one shared ideograph is no shared pair"),
    ("art", "The party starts at nine", 0.0, "a part of a word is no word"),
]


@pytest.mark.parametrize(("query", "text", "share", "reason"), ROWS, ids=[row[3] for row in ROWS])
def test_coverage_is_the_share_of_terms_that_the_text_holds(query: str, text: str, share: float, reason: str) -> None:
    assert Coverage(query_terms(query)).of(text) == pytest.approx(share)


LONG = [row for row in ROWS if row[3] != "an id, whole and in parts"]


@pytest.mark.parametrize(("query", "text", "share", "reason"), LONG, ids=[row[3] for row in LONG])
def test_a_long_text_counts_as_its_best_passage(query: str, text: str, share: float, reason: str) -> None:
    padding = "Nothing here matters much. " * 2_000
    assert Coverage(query_terms(query)).of(f"{padding}{text}. {padding}") == pytest.approx(share)


def test_a_text_that_says_one_term_all_the_time_is_read_in_time() -> None:
    began = process_time()
    assert Coverage(["x", "missing"]).of("x " * 131_072) == pytest.approx(0.5)
    assert process_time() - began < 2


def test_a_long_text_does_not_add_up_what_it_says_in_different_places() -> None:
    scattered = ("filler " * PASSAGE_CHARS).join(("alpha", "beta", "gamma", "delta"))
    assert Coverage(["alpha", "beta", "gamma", "delta"]).of(scattered) == pytest.approx(0.25)
