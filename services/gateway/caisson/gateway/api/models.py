"""The API's answers as JSON models, and how records become them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer

from caisson.gateway.domain.runs import RunRecord, StepRecord

ItemT = TypeVar("ItemT")


def rfc3339(moment: datetime) -> str:
    """Render a time in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[datetime, PlainSerializer(rfc3339, return_type=str, when_used="json")]


class Answer(BaseModel):
    """A frozen answer."""

    model_config = ConfigDict(frozen=True)


class OutcomeAnswer(Answer):
    """How a step ended; fields that the kind does not have are null."""

    kind: str
    exit_code: int | None = None
    signal: int | None = None
    guard: str | None = None
    reason: str | None = None


class OutputAnswer(Answer):
    """A captured stream: head and tail up to the run's `output_kib`. Where `truncated`, the gap follows the first
    `gap_at` characters of `text`; `bytes` counts the whole stream."""

    text: str
    bytes: int
    truncated: bool
    lossy: bool
    gap_at: int | None = None


class ErrorAnswer(Answer):
    """Why a run did not succeed."""

    code: str
    detail: str
    step_id: str | None = None


class StepAnswer(Answer):
    """A step."""

    id: str
    index: int
    kind: str
    status: str
    outcome: OutcomeAnswer | None
    stdout: OutputAnswer | None
    stderr: OutputAnswer | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    duration_ms: float | None
    error: ErrorAnswer | None


class RunAnswer(Answer):
    """A run."""

    id: str
    session_id: str | None
    tenant_id: str
    user_id: str
    status: str
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    attempt: int
    version: int
    error: ErrorAnswer | None
    steps: list[StepAnswer]
    metadata: dict[str, Any]


class ExecAnswer(StepAnswer):
    """The one step of an exec, with its run."""

    run_id: str
    run_status: str


class SessionAnswer(Answer):
    """A session; `deleting_at` is null but while it is being deleted."""

    id: str
    tenant_id: str
    user_id: str
    metadata: dict[str, Any]
    created_at: Timestamp
    deleting_at: Timestamp | None


class SecurityEventAnswer(Answer):
    """Something that a layer blocked, rewrote or refused."""

    id: str
    kind: str
    tenant_id: str
    user_id: str
    session_id: str | None
    run_id: str
    step_id: str | None
    guard: str | None
    reason: str
    snippet: str | None
    detail: dict[str, Any]
    occurred_at: Timestamp


class KeyAnswer(Answer):
    """An API key without its secret."""

    id: str
    prefix: str
    kind: str
    name: str
    tenant_id: str | None
    created_at: Timestamp
    revoked_at: Timestamp | None


class NewKeyAnswer(Answer):
    """A new API key: `key` is shown this once, and null in a replayed answer."""

    id: str
    prefix: str
    kind: str
    name: str
    tenant_id: str | None
    key: str | None


class PageAnswer(Answer, Generic[ItemT]):
    """A page, newest first; `next_cursor` is null on the last one."""

    items: list[ItemT]
    next_cursor: str | None


def step_answer(step: StepRecord) -> StepAnswer:
    """Render a step."""
    return StepAnswer.model_validate(step_fields(step))


def step_fields(step: StepRecord) -> dict[str, Any]:
    """Return a step's fields as its answer has them."""
    outcome = step.outcome
    failed = step.status in {"failed", "unknown"} and outcome is not None
    error = {"code": outcome["kind"], "detail": _detail(outcome)} if failed and outcome else None
    return {
        "id": step.step_id,
        "index": step.index,
        "kind": step.kind,
        "status": step.status,
        "outcome": outcome,
        "stdout": step.stdout,
        "stderr": step.stderr,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "duration_ms": step.duration_ms,
        "error": error,
    }


def run_answer(run: RunRecord) -> RunAnswer:
    """Render a run."""
    return RunAnswer(
        id=run.run_id,
        session_id=run.session_id,
        tenant_id=run.tenant_id,
        user_id=run.user_id,
        status=run.status,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        attempt=run.attempt,
        version=run.version,
        error=None if run.error is None else ErrorAnswer.model_validate(run.error),
        steps=[step_answer(step) for step in run.steps],
        metadata=run.metadata,
    )


def _detail(outcome: dict[str, Any]) -> str:
    match outcome["kind"]:
        case "exited":
            return f"the command exited with {outcome['exit_code']}"
        case "signalled":
            return f"signal {outcome['signal']} ended the command"
        case _:
            return str(outcome.get("reason") or outcome["kind"])
