"""The preamble of a channel: whole and proven it is accepted, cut off it waits, anything else it is refused."""

from hypothesis import given
from hypothesis import strategies as st

from caisson.common.channel import (
    HEADER_BYTES,
    MAX_PREAMBLE_BYTES,
    SIGNATURE,
    Incomplete,
    Preamble,
    Refused,
    prove,
    read_preamble,
    write_preamble,
)

REQUEST_ID = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=64)
KEY = st.binary(min_size=1, max_size=64)
WHOLE = write_preamble("req_1", b"key")


@given(REQUEST_ID, KEY, st.binary(max_size=64))
def test_a_written_preamble_is_read_back_whatever_follows(request_id: str, key: bytes, rest: bytes) -> None:
    written = write_preamble(request_id, key)
    assert read_preamble(written + rest, key) == Preamble(request_id=request_id, length=len(written))


@given(REQUEST_ID, KEY)
def test_every_part_of_a_preamble_waits_for_more(request_id: str, key: bytes) -> None:
    written = write_preamble(request_id, key)
    assert all(read_preamble(written[:length], key) == Incomplete() for length in range(len(written)))


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_no_byte_of_a_preamble_can_be_changed(position: int, flip: int) -> None:
    changed = bytearray(WHOLE)
    changed[position] ^= flip
    assert not isinstance(read_preamble(bytes(changed), b"key"), Preamble)
    follow_up = bytes(changed) + b"GET / HTTP/1.1\r\n\r\n" * 40
    assert isinstance(read_preamble(follow_up, b"key"), Refused), "with bytes behind it, nothing is left to wait for"


@given(REQUEST_ID, KEY, KEY)
def test_the_proof_of_another_key_is_refused(request_id: str, key: bytes, other: bytes) -> None:
    padded = [word.ljust(64, b"\0") for word in (key, other)]  # HMAC pads keys with zeros: these two are one
    accepted = isinstance(read_preamble(write_preamble(request_id, key), other), Preamble)
    assert accepted == (padded[0] == padded[1])


@given(st.binary(max_size=MAX_PREAMBLE_BYTES))
def test_bytes_of_any_kind_never_become_a_preamble(data: bytes) -> None:
    assert not isinstance(read_preamble(data, b"key"), Preamble)
    assert not isinstance(read_preamble(SIGNATURE + data, b"key"), Preamble)


def test_a_proof_is_bound_to_its_request_id() -> None:
    stolen = WHOLE.replace(b"req_1", b"req_2")
    assert read_preamble(stolen, b"key") == Refused(reason="the proof does not match the request id")
    assert prove("req_1", b"key") != prove("req_2", b"key")


def test_a_preamble_beyond_the_limit_is_refused_before_it_has_arrived() -> None:
    announced = WHOLE[: HEADER_BYTES - 2] + (MAX_PREAMBLE_BYTES).to_bytes(2, "big")
    assert isinstance(read_preamble(announced, b"key"), Refused)


def test_a_repeated_or_missing_field_is_refused() -> None:
    body = WHOLE[HEADER_BYTES:]
    for fields in (body + body, body[:8], b""):
        header = WHOLE[: HEADER_BYTES - 2] + len(fields).to_bytes(2, "big")
        assert isinstance(read_preamble(header + fields, b"key"), Refused)
