"""A message is about what both its subject and its envelope say, or it is refused."""

from datetime import UTC, datetime

import pytest

from caisson.common import subjects
from caisson.common.envelope import Envelope, open_envelope
from caisson.common.errors import InvalidInput
from caisson.common.ids import Ids, RunId, SessionId, StepId, TenantId, UserId

IDS = Ids(
    tenant=TenantId("acme"),
    user=UserId("u-1"),
    session=SessionId("ses_1"),
    run=RunId("run_1"),
    step=StepId("stp_1"),
)
ENVELOPE = Envelope(
    id="run_1:3",
    type="step.finished",
    tenant_id="acme",
    user_id="u-1",
    session_id="ses_1",
    run_id="run_1",
    step_id="stp_1",
    occurred_at=datetime(2026, 1, 31, tzinfo=UTC),
    data={"status": "succeeded"},
)
SUBJECT = str(subjects.event("step.finished", IDS))

MISMATCHES = [
    ({"tenant_id": "globex"}, "another tenant"),
    ({"tenant_id": None}, "no tenant where the subject names one"),
    ({"user_id": "u-2"}, "another user"),
    ({"session_id": "ses_2"}, "another session"),
    ({"run_id": "run_2"}, "another run"),
    ({"step_id": None}, "no step where the subject names one"),
    ({"type": "run.finished"}, "another fact"),
    ({"tenant_id": "ACME"}, "case counts"),
]

NOT_ENVELOPES = [
    (b"", "nothing"),
    (b"{", "cut off"),
    (b"[]", "a list"),
    (b"{}", "no fields"),
    (b'{"id":1}', "a number as id"),
    (b"\xff", "not UTF-8"),
    (ENVELOPE.model_dump_json().encode()[:-1] + b',"extra":1}', "a field that nobody declared"),
]


def test_a_matching_message_opens() -> None:
    subject, envelope = open_envelope(SUBJECT, ENVELOPE.model_dump_json().encode())
    assert subject.ids == IDS
    assert envelope == ENVELOPE


@pytest.mark.parametrize(("change", "reason"), MISMATCHES)
def test_an_envelope_that_differs_from_its_subject_is_refused(change: dict[str, str | None], reason: str) -> None:
    body = ENVELOPE.model_copy(update=change).model_dump_json().encode()
    with pytest.raises(InvalidInput, match="does not belong"):
        open_envelope(SUBJECT, body)


@pytest.mark.parametrize(("body", "reason"), NOT_ENVELOPES)
def test_what_is_no_envelope_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match="not an envelope"):
        open_envelope(SUBJECT, body)


def test_a_foreign_subject_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a subject"):
        open_envelope("elsewhere.evt", ENVELOPE.model_dump_json().encode())
