"""Which texts a tombstone takes for the forgotten one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caisson.common.ids import TenantId
from caisson.memory.domain.near import Same, decide
from caisson.memory.domain.tombstones import bare, bare_hash

ALIKE = [
    ("The gate code is 4711", "the gate code is 4711.", "a full stop"),
    ("The gate code is 4711", "The GATE code is 4711!!!", "case, and marks"),
    ("The gate code is 4711", "“The gate code is 4711.”", "quoted"),
    ("The gate code is 4711", "The gate code is 4711 ...", "a mark that stands alone"),
    ("The gate code is 4711", "The gate code, is: 4711?", "marks inside"),
    ("prefers C#", "prefers C#.", "after a sign"),
    ("Bo's bike is red", "(Bo's bike is red)", "in brackets"),
    ("vive a Oslo", "¡Vive a Oslo!", "marks that open"),
    ("門は赤い", "門は赤い。", "of another script"),
    ("reads a.b, then c:d", "reads a.b then c:d", "inside a word they stay"),
]


@pytest.mark.parametrize(("forgotten", "said", "reason"), ALIKE, ids=[row[2] for row in ALIKE])
def test_case_and_punctuation_make_no_other_text(forgotten: str, said: str, reason: str) -> None:
    assert bare(forgotten) == bare(said)


APART = [
    ("prefers C", "prefers C#", "a language"),
    ("prefers C", "prefers C++", "another"),
    ("it is 5 degrees", "it is -5 degrees", "below zero"),
    ("it is 5", "it is –5", "below zero, with a dash"),
    ("the balance is 500", "the balance is (500)", "a loss"),
    ("owes 15", "owes 1,5", "a decimal comma"),
    ("owes 15", "owes 1.5", "a decimal point"),
    ("it is .5 wide", "it is 5 wide", "a part of one"),
    ('it is 5" wide', "it is 5' wide", "inches and feet"),
    ("it is 5' wide", "it is 5 wide", "feet and a number"),
    ("the share is 5%", "the share is 5", "a share"),
    ("owes $5", "owes €5", "a currency"),
    ("a > b", "a < b", "an order"),
    ("a != b", "a = b", "not"),
    ("!ready", "ready", "not, before a word"),
    ("reads ./notes", "reads /notes", "a folder"),
    ("goes to ..", "goes to", "the parent folder"),
    ("reads .env", "reads env", "a hidden file"),
    ("Bo is in :)", "Bo is in :(", "a smile"),
    ("likes 🍕", "likes 🍣", "a dish"),
    ("her pens", "hers pen", "letters"),
    ("tea, not coffee", "not tea, coffee", "an order of words"),
]


@pytest.mark.parametrize(("forgotten", "said", "reason"), APART, ids=[row[2] for row in APART])
def test_a_sign_that_changes_the_meaning_makes_another_text(forgotten: str, said: str, reason: str) -> None:
    assert bare(forgotten) != bare(said)


MARKS = ".,;:!?'\"()#+-/%"


@settings(max_examples=1_000)
@given(st.text(st.sampled_from(f"ac5{MARKS}"), max_size=5), st.sampled_from(["a", "5", "#"]), st.sampled_from(MARKS))
@example("a", "c", ".")
def test_a_tombstone_is_no_looser_than_what_dedup_calls_the_same(start: str, end: str, mark: str) -> None:
    text = start + end
    for other in (text + mark, f"{text} {mark}", mark + text):
        if bare(text) == bare(other):
            assert decide(text, other) == Same()


@pytest.mark.parametrize("text", ["...", "?!", ":)", "“”", "..", "'"])
def test_a_text_of_marks_alone_is_itself(text: str) -> None:
    assert bare(text) == text
    assert bare("( " + text + " tea") != bare("tea") or text in {"...", "?!"}


def test_hashes_of_two_tenants_never_meet() -> None:
    assert bare_hash(TenantId("acme"), "tea.") == bare_hash(TenantId("acme"), "Tea")
    assert bare_hash(TenantId("acme"), "tea") != bare_hash(TenantId("other"), "tea")


def test_a_long_run_of_marks_takes_time_in_proportion() -> None:
    assert bare("a" + "." * 250_000 + "b" + "!'" * 100_000) == "a" + "." * 250_000 + "b"
