"""What follows a step: facts in, decision out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from caisson.common.leases import BashStep
from caisson.common.outcome import Outcome, StepStatus, status_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StartNext:
    """Record the result and start the next step in the same call."""

    step: BashStep


@dataclass(frozen=True, slots=True)
class FinishRun:
    """Record the result and end the run in the same call."""


@dataclass(frozen=True, slots=True)
class EndOverdue:
    """Record the result, then end the run in a call of its own: the ledger's clock says that its time was over."""


def after_step(
    outcome: Outcome,
    pending: Sequence[BashStep],
    *,
    on_failure: Literal["stop", "continue"],
    cancelling: bool,
    overdue: bool,
) -> StartNext | FinishRun | EndOverdue:
    """Decide what follows a step that ended with `outcome`, with `pending` steps after it."""
    status = status_of(outcome)
    if cancelling or status is StepStatus.CANCELLED:
        return FinishRun()
    if overdue and (pending or status is not StepStatus.SUCCEEDED):
        return EndOverdue()
    if not pending or (status is not StepStatus.SUCCEEDED and on_failure == "stop"):
        return FinishRun()
    return StartNext(step=pending[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How long a step may run, and whether the run's limit is what ends it."""

    timeout_s: float
    ends_run: bool


def allowance(step: BashStep, *, remaining_s: float) -> Allowance:
    """Return the smaller of the step's own time limit and what is left of the run's."""
    if remaining_s <= step.timeout_s:
        return Allowance(timeout_s=max(0.0, remaining_s), ends_run=True)
    return Allowance(timeout_s=step.timeout_s, ends_run=False)
