"""A cursor leads through a whole list once, and nothing but a cursor of ours is accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput
from caisson.gateway.domain.pages import DEFAULT_LIMIT, MAX_LIMIT, paginate, request_page

CURSORS = [
    ("", "empty"),
    ("!", "not base64"),
    ("é", "not ASCII"),
    ("\x00", "NUL"),
    ("AA", "base64 of NUL"),
    ("_____w", "base64 of no text"),
    ("a", "cut off"),
]


@given(st.integers(0, 30), st.integers(1, 12))
def test_following_the_cursors_tells_every_item_once_and_in_order(count: int, limit: int) -> None:
    everything = [f"run_{number:03}" for number in range(count, 0, -1)]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(count + 2):
        wanted = request_page(limit, cursor)
        older = [item for item in everything if wanted.before is None or item < wanted.before]
        found = older[: wanted.limit + 1]
        page = paginate(found, found, wanted)
        assert len(page.items) <= limit
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == everything


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1, 10**30])
def test_a_page_size_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match=f"1 to {MAX_LIMIT}"):
        request_page(limit, None)


@pytest.mark.parametrize(("cursor", "reason"), CURSORS)
def test_what_is_no_cursor_is_refused(cursor: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        request_page(None, cursor)
    assert [item.field for item in refused.value.fields] == ["cursor"], reason


@given(st.text())
def test_text_of_any_kind_is_a_cursor_or_a_typed_refusal(cursor: str) -> None:
    try:
        wanted = request_page(None, cursor)
    except InvalidInput:
        return
    assert wanted.limit == DEFAULT_LIMIT
    assert wanted.before
