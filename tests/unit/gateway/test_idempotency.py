"""A fingerprint changes with whatever must be the same in a repeated request, and with nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput
from caisson.gateway.domain.idempotency import MAX_KEY_CHARS, check_key, fingerprint

PARTS = st.lists(st.binary(max_size=12), max_size=5)


@given(PARTS, PARTS)
def test_two_requests_share_a_fingerprint_only_when_every_part_is_the_same(
    one: list[bytes], other: list[bytes]
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_parts_cannot_be_moved_across_their_borders() -> None:
    assert fingerprint(b"/v1/runs", b"u-1") != fingerprint(b"/v1/runsu", b"-1")
    assert fingerprint(b"ab", b"") != fingerprint(b"", b"ab")


@pytest.mark.parametrize("key", ["k", "a b", "~!@#", "0" * MAX_KEY_CHARS])
def test_a_key_is_printable_ascii(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["", "0" * (MAX_KEY_CHARS + 1), "é", "a\tb", "a\x00b", "\x7f"])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_key(key)
    assert [item.field for item in refused.value.fields] == ["Idempotency-Key"]
