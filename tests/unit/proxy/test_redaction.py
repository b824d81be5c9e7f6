"""A secret is masked however the stream is cut, and nothing else is held back."""

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.proxy.domain.frames import FrameRedactor
from caisson.proxy.domain.redaction import Redactor, Secret

VALUE = 'sk-"live"/0123456789+abc'
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


def redact(secret: Secret, pieces: list[bytes]) -> bytes:
    redactor = Redactor(secret)
    return b"".join([*map(redactor.feed, pieces), redactor.finish()])


@given(secrets, st.binary(max_size=20), st.binary(max_size=20), st.lists(st.integers(0, 80), max_size=6))
def test_a_secret_is_masked_however_the_stream_is_cut(
    value: str, before: bytes, after: bytes, cuts: list[int]
) -> None:
    stream = before + value.encode() + after
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    pieces = [stream[start:end] for start, end in pairwise(ends)]

    redacted = redact(Secret(value), pieces)

    assert value.encode() not in redacted
    assert len(redacted) == len(stream)


@given(secrets, st.binary(max_size=9), st.binary(max_size=9))
def test_base64_of_any_alignment_is_masked(value: str, before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + value.encode() + after)

    redacted = redact(Secret(value), [encoded])

    left = base64.b64decode(redacted.replace(b"*", b"A"))
    assert value.encode()[2:-2] not in left


@pytest.mark.parametrize("tail", [b"\n", b"}", b"\n\n", b"data", b"x", b"s!", b"sk-'"])
def test_an_end_that_cannot_begin_the_secret_passes_at_once(tail: bytes) -> None:
    assert Redactor(Secret(VALUE)).feed(b"event" + tail) == b"event" + tail


@pytest.mark.parametrize("length", range(1, len(VALUE)))
def test_an_end_that_may_begin_the_secret_is_held_and_no_more(length: int) -> None:
    redactor = Redactor(Secret(VALUE))
    assert redactor.feed(b"{}" + VALUE[:length].encode()) == b"{}"
    assert redactor.finish() == VALUE[:length].encode()


def test_a_false_beginning_is_let_go_when_the_stream_goes_on() -> None:
    redactor = Redactor(Secret(VALUE))
    assert redactor.feed(b"sk-") == b""
    assert redactor.feed(b"other") == b"sk-other"
    assert not redactor.echoed


def test_a_repeating_secret_is_found_behind_its_own_beginning() -> None:
    assert redact(Secret("abababac"), [b"abab", b"abababac!"]) == b"abab********!"


def test_a_large_piece_is_searched_like_a_small_one() -> None:
    filler = b"x" * 5000
    assert redact(Secret(VALUE), [filler + VALUE.encode() + filler]) == filler + b"*" * len(VALUE) + filler


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    st.lists(st.integers(0, 900), max_size=6),
    st.booleans(),
)
def test_frames_pass_whole_and_are_searched(payloads: list[bytes], cuts: list[int], masked: bool) -> None:  # noqa: FBT001
    stream = b"".join(_frame(payload, masked=masked) for payload in payloads)
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    redactor = FrameRedactor(Secret(VALUE))

    passed = b"".join(redactor.feed(stream[start:end]) for start, end in pairwise(ends))

    assert passed == stream


def test_a_secret_inside_a_frame_is_masked_and_the_next_frame_is_not_disturbed() -> None:
    redactor = FrameRedactor(Secret(VALUE))
    stream = _frame(b"a" + VALUE.encode(), masked=False) + _frame(b"sk-", masked=False)
    passed = b"".join(redactor.feed(stream[index : index + 1]) for index in range(len(stream)))
    assert passed == _frame(b"a" + b"*" * len(VALUE), masked=False) + _frame(b"sk-", masked=False)
    assert redactor.echoed


def _frame(payload: bytes, *, masked: bool) -> bytes:
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
    bit = 0x80 if masked else 0
    return b"\x82" + bytes([length[0] | bit]) + length[1:] + (b"\1\2\3\4" if masked else b"") + payload


ESCAPED = [
    ("a+b/c=d0", rb"a\u002Bb\u002fc\u003Dd0".replace(rb"\u002f", rb"\u002F"), "System.Text.Json"),
    ("key=value&x", rb"key\u003dvalue\u0026x", "gson, and Go for HTML"),
    ("it's<secret>", b"it&#39;s&lt;secret&gt;", "HTML with a decimal apostrophe"),
    ("two words here", b"two+words+here", "a form's encoding"),
    ("Token abcdef0123456789", b"abcdef0123456789", "a value without its scheme"),
]


@pytest.mark.parametrize(("secret", "echoed", "why"), ESCAPED, ids=[row[2] for row in ESCAPED])
def test_what_common_serialisers_make_of_a_secret_is_masked(secret: str, echoed: bytes, why: str) -> None:
    redactor = Redactor(Secret(secret))
    passed = redactor.feed(b'{"echo": "' + echoed + b'"}') + redactor.finish()
    assert echoed not in passed
    assert redactor.echoed
