"""What is kept of a stream, for every way in which it can arrive and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.outcome import Output
from caisson.runner.domain.output import HeadTail


def keep(limit_bytes: int, *pieces: bytes) -> Output:
    kept = HeadTail(limit_bytes)
    for piece in pieces:
        kept.add(piece)
    return kept.output()


CUTS = [
    (10, b"0123456789", Output(text="0123456789", bytes=10), "exactly the limit"),
    (10, b"0123456789a", Output(text="012346789a", bytes=11, truncated=True, gap_at=5), "one byte over"),
    (8, b"ab\ncd\nef\ngh\n", Output(text="ab\ngh\n", bytes=12, truncated=True, gap_at=3), "whole lines"),
    (6, b"ab\ncdefg\nhi\n", Output(text="ab\nhi\n", bytes=12, truncated=True, gap_at=3), "a tail that begins a line"),
    (
        8,
        b"abcdefghij\n",
        Output(text="abcdhij\n", bytes=11, truncated=True, gap_at=4),
        "one long line and its newline",
    ),
    (8, "日本日本日本".encode(), Output(text="日本", bytes=18, truncated=True, gap_at=1), "three-byte characters"),
    (10, "🦀🦀🦀🦀".encode(), Output(text="🦀🦀", bytes=16, truncated=True, gap_at=1), "four-byte characters"),
    (1, b"abc", Output(text="c", bytes=3, truncated=True, gap_at=0), "hardly anything"),
    (9, b"a\x00b", Output(text="a\ufffdb", bytes=3, lossy=True), "a NUL"),
    (9, b"a\xffb", Output(text="a\ufffdb", bytes=3, lossy=True), "a byte that is no text"),
    (9, "a\ufffdb".encode(), Output(text="a\ufffdb", bytes=5), "a replacement character of the command's own"),
    (9, b"", Output(), "nothing"),
]


@pytest.mark.parametrize(("limit", "data", "output", "why"), CUTS, ids=[why for *_, why in CUTS])
def test_the_text_is_cut_between_lines_or_characters(limit: int, data: bytes, output: Output, why: str) -> None:
    assert keep(limit, data) == output
    assert keep(limit, *(data[at : at + 1] for at in range(len(data)))) == output


def test_a_thousand_lines_have_no_partial_record() -> None:
    lines = [f"line {number}" for number in range(1000)]
    kept = keep(100, *(f"{line}\n".encode() for line in lines)).text.splitlines()
    assert kept[0] == lines[0]
    assert kept[-1] == lines[-1]
    assert set(kept) <= set(lines)


@given(st.lists(st.binary(max_size=40)), st.integers(min_value=1, max_value=64))
def test_how_the_bytes_arrive_does_not_matter(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)
    output = keep(limit, *pieces)
    assert output == keep(limit, whole)
    assert output.bytes == len(whole)
    assert output.truncated == (len(whole) > limit)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), st.integers(1, 40))
def test_text_is_never_made_lossy_by_the_cut(text: str, limit: int) -> None:
    output = keep(limit, text.encode())
    assert not output.lossy
    gap = output.gap_at if output.gap_at is not None else len(text)
    assert text.startswith(output.text[:gap])
    assert text.endswith(output.text[gap:])


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    kept = HeadTail(1000)
    for _ in range(1000):
        kept.add(b"x" * 65536)
    assert len(kept._head) + len(kept._tail) < 4000
    assert kept.total == 65_536_000
