"""A subject says which ids it is about, and parses back to exactly them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common import subjects
from caisson.common.errors import InvalidInput
from caisson.common.ids import Ids, RunId, SessionId, StepId, TenantId, UserId
from caisson.common.subjects import Plane, Subject, parse

ID = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
NAME = st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True)
IDS = st.builds(
    Ids,
    tenant=st.none() | ID.map(TenantId),
    user=st.none() | ID.map(UserId),
    session=st.none() | ID.map(SessionId),
    run=st.none() | ID.map(RunId),
    step=st.none() | ID.map(StepId),
)
SUBJECT = st.builds(Subject, plane=st.sampled_from(Plane), noun=NAME, verb=NAME, ids=IDS)

FOREIGN = [
    ("", "nothing"),
    ("caisson.evt.run.queued", "no ids"),
    ("caisson.evt.run.queued.a.b.c.d", "one token too few"),
    ("caisson.evt.run.queued.a.b.c.d.e.f", "one token too many"),
    ("other.evt.run.queued.a.b.c.d.e", "another system"),
    ("caisson.tmp.run.queued.a.b.c.d.e", "no such plane"),
    ("caisson.evt.run.queued.*.-.-.-.-", "a wildcard"),
    ("caisson.evt.run.queued.acme=com.-.-.-.-", "an id that is not encoded"),
    ("caisson.evt.run.queued..-.-.-.-", "an empty id"),
]


@given(SUBJECT)
def test_a_subject_parses_back_to_what_it_was_made_of(subject: Subject) -> None:
    assert parse(str(subject)) == subject


@given(SUBJECT)
def test_a_subject_is_concrete_and_has_nine_tokens(subject: Subject) -> None:
    text = str(subject)
    assert len(text.split(".")) == 9
    assert not set(text) & set("*> \t\r\n")
    assert text.startswith(subject.template)


@pytest.mark.parametrize(("text", "reason"), FOREIGN)
def test_a_subject_of_another_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text)


def test_a_pattern_leaves_out_the_ids_and_the_template_too() -> None:
    queued = subjects.event("run.queued", Ids(tenant=TenantId("acme"), run=RunId("run_1")))
    assert str(queued) == "caisson.evt.run.queued.acme.-.-.run_5f1.-"
    assert queued.template == "caisson.evt.run.queued"
    assert queued.pattern == subjects.RUN_QUEUED_PATTERN == "caisson.evt.run.queued.*.*.*.*.*"


def test_the_pattern_for_live_output_fixes_everything_but_the_step() -> None:
    ids = Ids(tenant=TenantId("a.b"), user=UserId("u"), run=RunId("run_1"), step=StepId("stp_1"))
    assert str(subjects.step_output(ids)) == "caisson.out.step.chunk.a_2eb.u.-.run_5f1.stp_5f1"
    assert subjects.run_output_pattern(ids) == "caisson.out.step.chunk.a_2eb.u.-.run_5f1.*"
