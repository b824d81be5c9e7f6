"""Live output keeps characters whole and offsets true."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from caisson.runner.domain.live_text import MAX_PIECE_BYTES, LiveText, Piece


def test_a_character_that_is_cut_waits_for_its_rest() -> None:
    text = LiveText()
    assert text.feed(0, b"a\xf0\x9f") == Piece(offset=0, text="a")
    assert text.feed(3, b"\x98\x80b") == Piece(offset=1, text="😀b")
    assert text.close() is None


def test_what_is_never_completed_is_replaced_at_the_end() -> None:
    text = LiveText()
    assert text.feed(0, b"\xc3") is None
    assert text.close() == Piece(offset=0, text="\ufffd")


def test_invalid_bytes_and_nul_are_replaced() -> None:
    assert LiveText().feed(0, b"a\xff\x00b") == Piece(offset=0, text="a\ufffd\ufffdb")


def test_a_gap_begins_with_a_whole_character_at_its_own_offset() -> None:
    text = LiveText()
    text.feed(0, b"abc\xc3")
    assert text.feed(100, "é".encode()[1:] + b"xyz") == Piece(offset=101, text="xyz")


def test_a_long_burst_is_cut_and_the_rest_shows_as_a_gap() -> None:
    text = LiveText()
    first = text.feed(0, b"x" * (2 * MAX_PIECE_BYTES))
    assert first is not None
    assert (first.offset, len(first.text)) == (0, MAX_PIECE_BYTES)
    assert text.feed(2 * MAX_PIECE_BYTES, b"yz") == Piece(offset=2 * MAX_PIECE_BYTES, text="yz")


@given(st.text(max_size=200), st.lists(st.integers(min_value=0, max_value=800), max_size=8))
def test_however_it_is_cut_the_text_and_its_offsets_are_the_same(whole: str, cuts: list[int]) -> None:
    data = whole.replace("\x00", "").encode(errors="replace")
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    text = LiveText()
    pieces = [text.feed(start, data[start:end]) for start, end in pairwise(places)]
    found = [piece for piece in (*pieces, text.close()) if piece is not None]
    assert "".join(piece.text for piece in found) == data.decode()
    assert [piece.offset for piece in found] == [
        len("".join(piece.text for piece in found[:count]).encode()) for count in range(len(found))
    ]
