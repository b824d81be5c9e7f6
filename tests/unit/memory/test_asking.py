"""A query without content is refused, and never means everything."""

import pytest

from caisson.common.errors import EmptyQuery, InvalidInput
from caisson.memory.domain.asking import MAX_QUERY_CHARS, check_query, searched_layers
from caisson.memory.domain.layers import Layer

CONTENTLESS = [
    ("", "nothing"),
    ("  \t ", "blanks"),
    ("\n", "a line end"),
    ("\u200b\u2060\ufeff", "zero-width characters"),
    ("the and of", "stop words"),
    ("What was it?", "stop words in a sentence"),
    ("🎉🚀", "emoji"),
    ("?!… — ***", "punctuation"),
    ("___", "underscores"),
]


@pytest.mark.parametrize(("query", "reason"), CONTENTLESS, ids=[reason for _, reason in CONTENTLESS])
def test_a_query_without_content_is_refused(query: str, reason: str) -> None:
    with pytest.raises(EmptyQuery) as refused:
        check_query(query)
    assert refused.value.code == "empty_query"
    assert refused.value.fields[0].field == "query"


CONTENTFUL = [
    ("Oslo", "a word"),
    ("CN-A10293", "an id"),
    ("東京", "ideographs"),
    ("é", "one letter"),
    ("🎉 party", "emoji with a word"),
    ("0", "a digit"),
]


@pytest.mark.parametrize(("query", "reason"), CONTENTFUL, ids=[reason for _, reason in CONTENTFUL])
def test_a_query_with_content_is_accepted(query: str, reason: str) -> None:
    check_query(query)


def test_a_query_over_the_limit_is_told_the_limit() -> None:
    with pytest.raises(InvalidInput, match=str(MAX_QUERY_CHARS)):
        check_query("word " * MAX_QUERY_CHARS)


LAYERS: list[tuple[frozenset[Layer], str | None, frozenset[Layer], str]] = [
    (frozenset(), None, frozenset(), "no session: every layer, sessions' memories left out one by one"),
    (frozenset({Layer.SEMANTIC, Layer.SESSION}), None, frozenset({Layer.SEMANTIC}), "no session named"),
    (frozenset(), "ses_1", frozenset(), "a session: every layer"),
    (frozenset({Layer.SESSION}), "ses_1", frozenset({Layer.SESSION}), "a session's own"),
]


@pytest.mark.parametrize(("asked", "session", "searched", "reason"), LAYERS, ids=[row[3] for row in LAYERS])
def test_memories_of_sessions_need_a_session(
    asked: frozenset[Layer], session: str | None, searched: frozenset[Layer], reason: str
) -> None:
    assert searched_layers(asked, session) == searched


def test_the_session_layer_alone_without_a_session_is_a_mistake_and_not_everything() -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        searched_layers(frozenset({Layer.SESSION}), None)
