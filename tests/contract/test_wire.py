"""The messages between the services, as they stand on the wire: `wire.json` changes on purpose or not at all.

A service of the last release talks to one of this: a field that is removed, renamed or new without a default breaks
it.
"""

import inspect
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from caisson.common import contexts, leases, outcome
from caisson.common.contexts import Credential, RunContext, SealedCredentials
from caisson.common.envelope import Envelope
from caisson.common.leases import (
    BashStep,
    Claim,
    Done,
    FinishRun,
    FinishStep,
    Grant,
    Grants,
    Holding,
    Limits,
    OutputChunk,
    RecordSecurity,
    Release,
    Renew,
    Renewed,
    SecurityEvent,
    SecurityKind,
    StartStep,
    Verdict,
)
from caisson.common.messages import Message
from caisson.common.outcome import (
    Blocked,
    Cancelled,
    DiskFull,
    Exited,
    Lost,
    NotStarted,
    OomKilled,
    Output,
    PidsExhausted,
    Signalled,
    TimedOut,
)
from caisson.common.replies import ErrorReply

GOLDEN = Path(__file__).with_name("wire.json")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HOLDING = Holding(worker_id="w-1", run_id="run_1", fence=2)
STEP = BashStep(step_id="stp_1", index=0, command="echo 😀", timeout_s=60)
SECURITY = SecurityEvent(
    id="sec_1",
    kind=SecurityKind.COMMAND_BLOCKED,
    run_id="run_1",
    step_id="stp_1",
    guard="tenant",
    reason="names another tenant",
    snippet="curl …",
    detail={"word": 3},
)
STDOUT = Output(text="42\n", bytes=3, truncated=True, lossy=True, gap_at=2)
GRANT = Grant(
    tenant_id="acme",
    user_id="u-1",
    session_id="ses_1",
    run_id="run_1",
    fence=2,
    attempt=1,
    lease_s=15,
    uid=10_000,
    request_id="req_1",
    limits=Limits(),
    remaining_s=599.5,
    env={"REGION": "eu"},
    datasets=["ds_1"],
    on_failure="stop",
    steps=[STEP],
    resumed_after=1,
    workspace_lost=False,
    traceparent=TRACEPARENT,
)
CONTEXT = RunContext(
    request_id="req_1",
    tenant_id="acme",
    user_id="u-1",
    session_id=None,
    run_id="run_1",
    fence=2,
    ttl_s=15,
    datasets=["ds_1"],
    credentials={"metrics": SealedCredentials(run=None, tenant="c2VhbGVk")},
    traceparent=TRACEPARENT,
)
SAMPLES: list[Message] = [
    Limits(),
    STEP,
    SECURITY,
    GRANT,
    Claim(worker_id="w-1", slots=4, reserve=1),
    Grants(grants=[GRANT]),
    HOLDING,
    Renew(worker_id="w-1", leases=[HOLDING]),
    Renewed(verdicts={"run_1": Verdict.CONTINUE, "run_2": Verdict.CANCEL, "run_3": Verdict.LOST}),
    StartStep(holding=HOLDING, step_id="stp_1"),
    FinishRun(holding=HOLDING),
    FinishStep(
        holding=HOLDING,
        step_id="stp_1",
        outcome=Exited(exit_code=0),
        stdout=STDOUT,
        stderr=Output(),
        duration_ms=12.5,
        security=[SECURITY],
        start_next="stp_2",
    ),
    Release(holding=HOLDING),
    RecordSecurity(events=[SECURITY]),
    Done(verdict=Verdict.CANCEL),
    OutputChunk(step_id="stp_1", stream="stdout", offset=3, text="é"),
    Credential(tenant_id="acme", upstream="metrics", kind="bearer", value="tok"),
    SealedCredentials(run="c2VhbGVk", tenant=None),
    CONTEXT,
    Exited(exit_code=1),
    Signalled(signal=11),
    TimedOut(reason="60 s"),
    Cancelled(),
    OomKilled(reason="512 MiB"),
    PidsExhausted(reason="128"),
    DiskFull(reason="256 MiB", exit_code=1),
    Blocked(guard="tenant", reason="names another tenant"),
    NotStarted(reason="no namespace"),
    Lost(),
    STDOUT,
    Envelope(
        id="run_1:3",
        type="step.finished",
        tenant_id="acme",
        user_id="u-1",
        session_id=None,
        run_id="run_1",
        step_id="stp_1",
        occurred_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
        data={"status": "succeeded"},
    ),
    ErrorReply(code="lease_lost", detail="gone", fields=[{"field": "fence", "message": "2"}]),
]


def as_told(message: Message) -> Any:
    return json.loads(message.model_dump_json())


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_stands_on_the_wire_as_agreed(message: Message) -> None:
    agreed = json.loads(GOLDEN.read_text())[type(message).__name__]
    assert as_told(message) == agreed, f"if the wire is meant to change, change {GOLDEN.name} with it"
    assert type(message).model_validate_json(json.dumps(agreed)) == message


def test_every_message_is_in_the_agreement_and_nothing_else() -> None:
    declared = {
        name
        for module in (contexts, leases, outcome)
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Message) and kind.__module__ == module.__name__
    }
    assert {type(message).__name__ for message in SAMPLES} == declared | {"Envelope", "ErrorReply"}
    assert set(json.loads(GOLDEN.read_text())) == declared | {"Envelope", "ErrorReply"}


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_a_field_that_nobody_declared_is_refused(message: Message) -> None:
    with pytest.raises(ValueError, match="extra_forbidden"):
        type(message).model_validate_json(json.dumps({**as_told(message), "extra": 1}))
