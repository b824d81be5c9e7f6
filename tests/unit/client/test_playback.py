"""Live output put together: whatever came live, the whole is the step's output, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.client.models import Output
from caisson.client.playback import Complete, Playback, Rest

WHOLE = "α\nβ\nγ\n".encode()

CASES: list[tuple[str, list[tuple[int, str]], bytes, Complete | Rest]] = [
    ("nothing came live", [], b"", Rest(WHOLE)),
    ("all came live", [(0, "α\n"), (3, "β\nγ\n")], WHOLE, Complete()),
    ("the end is missing", [(0, "α\n")], "α\n".encode(), Rest("β\nγ\n".encode())),
    ("a gap holds back what follows", [(0, "α\n"), (6, "γ\n")], "α\n".encode(), Rest("β\nγ\n".encode())),
    ("the start is missing", [(3, "β\n")], b"", Rest(WHOLE)),
    ("a repeated piece is shown once", [(0, "α\n"), (0, "α\n"), (3, "β\n")], "α\nβ\n".encode(), Rest("γ\n".encode())),
    ("an overlapping piece adds its new part", [(0, "α\n"), (0, "α\nβ\n")], "α\nβ\n".encode(), Rest("γ\n".encode())),
]


@pytest.mark.parametrize(("pieces", "shown", "rest"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_pieces_are_shown_as_far_as_they_join(
    pieces: list[tuple[int, str]], shown: bytes, rest: Complete | Rest
) -> None:
    playback = Playback()
    assert b"".join(playback.take(offset, text) for offset, text in pieces) == shown
    assert playback.finish(Output(text=WHOLE.decode(), bytes=len(WHOLE))) == rest


def test_a_replaced_byte_holds_the_rest_until_the_result_tells_it() -> None:
    raw = b"ab\xffcd"
    playback = Playback()
    assert playback.take(0, "ab\ufffd") == b"ab"
    assert playback.take(3, "cd") == b""
    assert playback.finish(Output(text="ab\ufffdcd", bytes=len(raw), lossy=True)) == Rest("\ufffdcd".encode())


KEPT: list[tuple[str, str, bytes]] = [
    ("before the gap", "he", b"adtail"),
    ("at the gap", "head", b"tail"),
    ("within the gap", "head" + "x" * 10, b"tail"),
    ("within the tail", "head" + "x" * 92 + "ta", b"il"),
]


@pytest.mark.parametrize(("shown", "rest"), [case[1:] for case in KEPT], ids=[case[0] for case in KEPT])
def test_what_the_result_keeps_completes_what_was_shown(shown: str, rest: bytes) -> None:
    playback = Playback()
    playback.take(0, shown)
    assert playback.finish(Output(text="headtail", bytes=100, truncated=True, gap_at=4)) == Rest(rest, gap=True)


@given(st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20))))
def test_what_is_shown_is_always_a_beginning_of_the_output(whole: bytes, pieces: list[tuple[int, int]]) -> None:
    playback = Playback()
    shown = b"".join(playback.take(at, whole[at : at + size].decode(errors="replace")) for at, size in pieces)
    assert whole.startswith(shown)
