"""The API's answers as typed models.

Invariant: a newer gateway never breaks an older client: unknown fields are kept, unknown states stay plain strings.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SecretStr


def rfc3339(value: datetime) -> str:
    """Return a time in UTC with milliseconds; one without a time zone is local time."""
    try:
        in_utc = value.astimezone(UTC)
    except (OverflowError, ValueError):  # so near to the first or last year that the hour cannot matter
        in_utc = value.replace(tzinfo=UTC)
    return in_utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Time = Annotated[datetime, PlainSerializer(rfc3339, return_type=str, when_used="json")]


StreamName = Literal["stdout", "stderr"]


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


FINISHED_RUN = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})
FINISHED_STEP = frozenset({StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.UNKNOWN})


class Answer(BaseModel):
    """A frozen answer that keeps the fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class Outcome(Answer):
    """How a step ended; `kind` is one of the closed set, or one that a newer gateway added."""

    kind: str
    exit_code: int | None = None
    signal: int | None = None
    guard: str | None = None
    reason: str | None = None


class Output(Answer):
    """One captured stream: `bytes` is its true size; `text` has a gap after `gap_at` characters when `truncated`."""

    text: str = ""
    bytes: int = 0
    truncated: bool = False
    lossy: bool = False
    gap_at: int | None = None


class Step(Answer):
    """One unit of a run. Lists of runs come without `stdout` and `stderr`."""

    id: str
    index: int = 0
    kind: str = "bash"
    status: Annotated[StepStatus | str, Field(union_mode="left_to_right")]
    outcome: Outcome | None = None
    stdout: Output | None = None
    stderr: Output | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    duration_ms: float | None = None
    error: Any = None

    @property
    def finished(self) -> bool:
        """Whether the step has a result."""
        return self.status in FINISHED_STEP


class ExecResult(Step):
    """The finished step of a one-command run."""

    run_id: str


class Run(Answer):
    """One piece of accepted work."""

    id: str
    session_id: str | None = None
    tenant_id: str
    user_id: str
    status: Annotated[RunStatus | str, Field(union_mode="left_to_right")]
    created_at: Time
    started_at: Time | None = None
    finished_at: Time | None = None
    attempt: int = 0
    version: int = 0
    error: Any = None
    steps: list[Step] = []
    metadata: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """Whether the run has ended; it never changes again."""
        return self.status in FINISHED_RUN

    @property
    def succeeded(self) -> bool:
        """Whether the run ended well."""
        return self.status == RunStatus.SUCCEEDED


class Session(Answer):
    """A conversation: it groups runs. `deleting_at` is None but while it is being deleted."""

    id: str
    tenant_id: str | None = None
    user_id: str | None = None
    created_at: Time | None = None
    deleting_at: Time | None = None


class Tenant(Answer):
    """A tenant's limits, ceilings, concurrency and retention."""

    id: str


class ApiKey(Answer):
    """An API key as it is listed; `key` holds the whole key only in the answer that made it."""

    id: str
    prefix: str | None = None
    name: str | None = None
    tenant_id: str | None = None
    created_at: Time | None = None
    revoked_at: Time | None = None
    key: SecretStr | None = None


class SecurityEvent(Answer):
    """Something that a guard, the proxy or the network blocked, rewrote or refused."""

    id: str | None = None
    kind: str
    tenant_id: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    guard: str | None = None
    reason: str | None = None
    snippet: str | None = None
    detail: dict[str, Any] = {}
    occurred_at: Time | None = None


class RunEvent(Answer):
    """A fact about a run, or a piece of live output. `seq` is set on durable events only."""

    seq: int | None = None
    type: str
    data: dict[str, Any] = {}

    @property
    def durable(self) -> bool:
        """Whether the event is in the ledger, and not only live."""
        return self.seq is not None
