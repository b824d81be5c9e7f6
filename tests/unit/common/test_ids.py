"""Ids of any script pass through a subject token and come back; two ids never meet in one."""

import itertools
import re
import string
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.errors import InvalidId
from caisson.common.ids import ABSENT, MAX_ID_CHARS, check_external_id, decode_token, encode_token, new_id

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
TOKEN = re.compile(r"[A-Za-z0-9_-]+")

LOOKALIKES = [
    ("acme.com", "acme=com", "a separator is not another"),
    ("acme_2ecom", "acme.com", "an id that looks encoded is not the id it would decode to"),
    ("_2d", "-", "an id spelled like the token of the absent mark"),
    ("Acme", "acme", "case counts"),
    ("\u00e9", "e\u0301", "the same glyph in two normal forms is two ids"),
    ("a", "\u0430", "Latin and Cyrillic"),
]

REFUSED_IDS = [
    ("", "empty"),
    ("a" * (MAX_ID_CHARS + 1), "too long"),
    ("a\x00b", "NUL"),
    ("a\nb", "a line break"),
    ("a\u2028b", "a line separator"),
    ("\u200b", "an invisible character"),
    ("\ud800", "a lone surrogate"),
    (" acme", "a space in front, which a header would lose"),
    ("acme ", "a space behind"),
    ("\u00a0acme", "a space of another kind"),
]

REFUSED_TOKENS = [
    ("_2E", "upper-case digits: not what the encoder writes"),
    ("_61", "a letter that needs no encoding"),
    ("_", "cut off"),
    ("_2", "cut off"),
    ("_ff", "not UTF-8"),
    ("_+1", "a sign, which int() would accept"),
    ("a.b", "a dot is no part of a token"),
    ("\u00e9", "a letter beyond ASCII"),
    ("", "nothing"),
    ("-", "the absent mark is the token of no id"),
]


@given(TEXT)
def test_a_token_decodes_to_its_id_and_holds_only_what_a_subject_may(value: str) -> None:
    token = encode_token(value)
    assert TOKEN.fullmatch(token)
    assert token != ABSENT
    assert decode_token(token) == value


@given(TEXT, TEXT)
def test_two_ids_never_share_a_token(one: str, other: str) -> None:
    assert (encode_token(one) == encode_token(other)) == (one == other)


@given(st.text(string.ascii_letters + string.digits + "_-.", max_size=12))
def test_what_decodes_is_exactly_what_the_encoder_writes(token: str) -> None:
    try:
        value = decode_token(token)
    except InvalidId:
        return
    assert encode_token(value) == token


@pytest.mark.parametrize(("one", "other", "reason"), LOOKALIKES)
def test_ids_that_look_alike_stay_apart(one: str, other: str, reason: str) -> None:
    assert encode_token(one) != encode_token(other), reason


@pytest.mark.parametrize(("token", "reason"), REFUSED_TOKENS)
def test_a_token_that_the_encoder_would_not_write_is_refused(token: str, reason: str) -> None:
    with pytest.raises(InvalidId):
        decode_token(token)


@pytest.mark.parametrize(("value", "reason"), REFUSED_IDS)
def test_an_id_that_could_not_travel_is_refused_and_the_field_named(value: str, reason: str) -> None:
    with pytest.raises(InvalidId) as refused:
        check_external_id(value, field="tenant_id")
    assert [field.field for field in refused.value.fields] == ["tenant_id"], reason


@pytest.mark.parametrize("value", ["a", "acme.com", "a b", "株式会社", "شركة", "😀", "a/b\\c", "x" * MAX_ID_CHARS])
def test_an_id_of_any_script_is_accepted_as_it_is(value: str) -> None:
    assert check_external_id(value, field="tenant_id") == value


def test_new_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id("run") for _ in range(4_000)]
    assert made == sorted(set(made))
    assert all(re.fullmatch(r"run_[0-9a-hjkmnp-tv-z]{26}", one) for one in made)
    assert encode_token(made[0]) == made[0].replace("_", "_5f")


@pytest.mark.parametrize("step_ms", [0, -3_600_000], ids=["a clock that stands", "a clock that is set back"])
def test_new_ids_keep_their_order_and_stay_unguessable_whatever_the_clock_does(
    monkeypatch: pytest.MonkeyPatch, step_ms: int
) -> None:
    reading = itertools.count(time.time_ns(), step_ms * 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(reading))
    made = [new_id("run") for _ in range(1_000)]
    assert made == sorted(set(made))
    assert len({one[:-4] for one in made}) == 1_000, "what is counted on is random, not one more"


def test_new_ids_of_many_threads_are_unique() -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        made = list(pool.map(lambda _: new_id("run"), range(4_000)))
    assert len(set(made)) == 4_000
