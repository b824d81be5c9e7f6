"""What becomes of a run whose worker is gone. A pure function from facts to a decision."""

from dataclasses import dataclass
from typing import Literal

from caisson.common.outcome import Cancelled, Lost, TimedOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The facts about a running run at the moment its worker is known to be gone."""

    attempt: int
    max_attempts: int
    on_lost: Literal["retry", "stop"]
    step_running: bool
    has_results: bool
    cancelling: bool
    cancel_reason: str | None
    overdue: bool
    timeout_s: float
    released: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Another worker goes on after the last recorded step. A release costs no attempt."""

    attempts: Literal[0, 1]
    reason: Literal["worker_lost", "released"]
    workspace_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The run ends; a running step gets `outcome`."""

    status: Literal["failed", "cancelled"]
    code: str
    detail: str
    outcome: Lost | TimedOut | Cancelled


def decide(run: Interrupted) -> Requeue | End:
    """Cancel beats the deadline, the deadline beats a retry, an unknown step beats both when the caller said so."""
    if run.cancelling:
        reason = run.cancel_reason or "cancelled"
        return End(status="cancelled", code="cancelled", detail=reason, outcome=Cancelled(reason=reason))
    if run.overdue:
        detail = f"the run exceeded {run.timeout_s} s"
        return End(status="failed", code="run_timeout", detail=detail, outcome=TimedOut(reason=detail))
    if run.step_running and run.on_lost == "stop":
        detail = "the worker was lost while a step ran; whether its effects happened is unknown"
        return End(status="failed", code="step_unknown", detail=detail, outcome=Lost())
    if not run.released and run.attempt >= run.max_attempts:
        detail = f"the worker was lost in each of {run.attempt} attempts"
        return End(status="failed", code="worker_lost", detail=detail, outcome=Lost())
    return Requeue(
        attempts=0 if run.released else 1,
        reason="released" if run.released else "worker_lost",
        workspace_lost=run.has_results or run.step_running,
    )
