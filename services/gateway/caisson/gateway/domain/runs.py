"""Runs as the ledger tells them, and what the API needs of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from caisson.common.ids import RunId, SessionId, TenantId, UserId
from caisson.gateway.domain.pages import Page, PageRequest
from caisson.gateway.domain.plans import Plan

MAX_EVENTS = 500


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing changes any more."""
        return self in {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step with its outcome; `stdout` and `stderr` are None where they were not asked for."""

    step_id: str
    index: int
    kind: str
    status: str
    outcome: dict[str, Any] | None
    stdout: dict[str, Any] | None
    stderr: dict[str, Any] | None
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run with its steps."""

    run_id: RunId
    session_id: SessionId | None
    tenant_id: TenantId
    user_id: UserId
    status: RunStatus
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    version: int
    error: dict[str, Any] | None
    metadata: dict[str, Any]
    steps: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """An accepted plan with its ids; `sealed` holds ciphertexts by upstream, `traceparent` the trace it began in."""

    run_id: RunId
    tenant_id: TenantId
    user_id: UserId
    session_id: SessionId | None
    plan: Plan
    sealed: dict[str, str]
    traceparent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A durable event: `seq` numbers it inside its run, from 1, without gaps."""

    seq: int
    type: str
    data: dict[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelResult:
    """What a cancel met, and what it left."""

    before: RunStatus
    after: RunStatus


class Runs(Protocol):
    """The ledger's runs."""

    async def create(self, run: NewRun) -> datetime | None:
        """Store run, steps and `run.queued` at once and return when; None where the run id existed already.

        Raises:
            SessionDeleting: nothing begins in its session any more.
        """

    async def get(self, run_id: RunId, tenant: TenantId) -> RunRecord:
        """Return a run of the tenant, or raise NotFound."""

    async def page(
        self, tenant: TenantId, request: PageRequest, *, session: str | None, status: RunStatus | None
    ) -> Page[RunRecord]:
        """Return runs without step output, newest first."""

    async def events(self, run_id: RunId, *, after: int) -> list[EventRecord]:
        """Return up to `MAX_EVENTS` events that follow number `after`; raise NotFound once the run is gone."""

    async def cancel(self, run_id: RunId, tenant: TenantId, *, reason: str) -> CancelResult:
        """End a queued run, mark a running one; raise NotFound for another tenant's."""


class News(Protocol):
    """News of one run, while its context is entered; lost news only costs the poll of whoever waits."""

    async def __aenter__(self) -> "News":
        """Start collecting."""

    async def __aexit__(self, *error: object) -> None:
        """Stop collecting."""

    def wake(self) -> None:
        """Let `next` return now."""

    async def next(self, *, timeout_s: float) -> bool:
        """Wait for news since the last call; return whether there were any within the time."""


class Wakes(Protocol):
    """Where news of runs comes from."""

    def subscribe(self, run_id: RunId, *, finished_only: bool = False) -> News:
        """Return a context that collects news of a run from when it is entered."""


def accepted(run: NewRun, created_at: datetime) -> RunRecord:
    """Return a run as it stands right after it was accepted."""
    steps = tuple(
        StepRecord(
            step_id=step.step_id,
            index=index,
            kind="bash",
            status="pending",
            outcome=None,
            stdout=None,
            stderr=None,
            started_at=None,
            finished_at=None,
            duration_ms=None,
        )
        for index, step in enumerate(run.plan.steps)
    )
    return RunRecord(
        run_id=run.run_id,
        session_id=run.session_id,
        tenant_id=run.tenant_id,
        user_id=run.user_id,
        status=RunStatus.QUEUED,
        created_at=created_at,
        started_at=None,
        finished_at=None,
        attempt=1,
        version=1,
        error=None,
        metadata=run.plan.metadata,
        steps=steps,
    )
