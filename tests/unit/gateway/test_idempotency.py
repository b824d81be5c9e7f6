"""A fingerprint changes with whatever must be the same in a repeated request, and with nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput
from caisson.gateway.domain.idempotency import MAX_KEY_CHARS, check_key, fingerprint, scope_of
from caisson.gateway.domain.principals import ApiKey, KeyKind, Principal, act_for

PARTS = st.lists(st.binary(max_size=12), max_size=5)


@given(PARTS, PARTS)
def test_two_requests_share_a_fingerprint_only_when_every_part_is_the_same(
    one: list[bytes], other: list[bytes]
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_parts_cannot_be_moved_across_their_borders() -> None:
    assert fingerprint(b"/v1/runs", b"u-1") != fingerprint(b"/v1/runsu", b"-1")
    assert fingerprint(b"ab", b"") != fingerprint(b"", b"ab")


CALLERS = [
    ("csn_1", "a", "b:c"),
    ("csn_1", "a:b", "c"),
    ("csn_1", "a", None),
    ("csn_1", None, None),
    ("csn_2", "a", "b:c"),
]


def test_each_caller_has_keys_of_its_own() -> None:
    assert len({scope_of(principal(*caller)) for caller in CALLERS}) == len(CALLERS)
    assert scope_of(principal(*CALLERS[0])) == scope_of(principal(*CALLERS[0]))


def principal(key_id: str, tenant: str | None, user: str | None) -> Principal:
    key = ApiKey(key_id=key_id, kind=KeyKind.PLATFORM, name="", tenant=None, secret_hash=b"")
    return act_for(key, tenant=tenant, user=user)


@pytest.mark.parametrize("key", ["k", "a b", "~!@#", "0" * MAX_KEY_CHARS])
def test_a_key_is_printable_ascii(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["", "0" * (MAX_KEY_CHARS + 1), "é", "a\tb", "a\x00b", "\x7f"])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_key(key)
    assert [item.field for item in refused.value.fields] == ["Idempotency-Key"]
