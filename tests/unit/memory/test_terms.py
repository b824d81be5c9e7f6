"""Ids, error codes, accents and scripts without spaces are found by their terms alone."""

import pytest

from caisson.memory.domain.terms import MAX_TERM_CHARS, query_terms, terms

FOUND = [
    ("Invoice CN-A10293 is open", "CN-A10293", "an id as a whole"),
    ("Invoice CN-A10293 is open", "a10293", "and by its part"),
    ("fails with ERR_CONN_RESET", "ERR_CONN_RESET", "an error code"),
    ("fails with 0x80070005", "0x80070005", "a number as codes have it"),
    ("我喜欢喝绿茶", "绿茶", "Chinese, within a run"),
    ("我喜欢喝绿茶", "茶", "one character of it"),
    ("東京に住んでいます", "東京", "Japanese"),
    ("Живёт в Москве", "москве", "Russian, folded case"),
    ("Le café est fermé", "cafe", "without its accent"),
    ("the cafe is closed", "café", "and the other way"),
    ("서울에 살아요", "서울", "Korean with its particle"),
]


@pytest.mark.parametrize(("text", "query", "why"), FOUND)
def test_a_query_shares_every_term_with_the_text_it_is_about(text: str, query: str, why: str) -> None:
    assert set(query_terms(query)) <= set(terms(text)), why


def test_stopwords_alone_are_no_query_and_terms_are_bounded() -> None:
    assert query_terms("the and of") == []
    assert max(map(len, terms("x" * 200_000))) == MAX_TERM_CHARS
