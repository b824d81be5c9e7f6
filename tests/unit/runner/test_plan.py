"""What follows a step, and how long it may run."""

from typing import Literal

import pytest

from caisson.common.leases import BashStep
from caisson.common.outcome import Blocked, Cancelled, Exited, Lost, NotStarted, Outcome, Signalled, TimedOut
from caisson.runner.domain.plan import Allowance, EndOverdue, FinishRun, StartNext, after_step, allowance

NEXT = BashStep(step_id="stp_2", index=1, command="true", timeout_s=60)
OK, FAILED = Exited(exit_code=0), Exited(exit_code=1)


@pytest.mark.parametrize(
    ("outcome", "pending", "on_failure", "cancelling", "overdue", "follows"),
    [
        pytest.param(OK, [NEXT], "stop", False, False, StartNext(step=NEXT), id="on to the next step"),
        pytest.param(OK, [], "stop", False, False, FinishRun(), id="nothing left"),
        pytest.param(FAILED, [NEXT], "stop", False, False, FinishRun(), id="a failure stops"),
        pytest.param(FAILED, [NEXT], "continue", False, False, StartNext(step=NEXT), id="a failure does not stop"),
        pytest.param(FAILED, [], "continue", False, False, FinishRun(), id="a failure at the end"),
        pytest.param(
            Blocked(guard="g", reason="r"), [NEXT], "stop", False, False, FinishRun(), id="blocked is failed"
        ),
        pytest.param(NotStarted(reason="r"), [NEXT], "stop", False, False, FinishRun(), id="so is not started"),
        pytest.param(Signalled(signal=11), [NEXT], "stop", False, False, FinishRun(), id="so is a signal"),
        pytest.param(Lost(), [NEXT], "stop", False, False, FinishRun(), id="unknown is no success"),
        pytest.param(OK, [NEXT], "stop", True, False, FinishRun(), id="a cancel ends after a success"),
        pytest.param(FAILED, [NEXT], "continue", True, False, FinishRun(), id="a cancel beats continue"),
        pytest.param(Cancelled(), [NEXT], "continue", False, False, FinishRun(), id="a cancelled step ends the run"),
        pytest.param(OK, [NEXT], "stop", False, True, EndOverdue(), id="no time for the next step"),
        pytest.param(OK, [], "stop", False, True, FinishRun(), id="done, if at the last moment"),
        pytest.param(TimedOut(reason="r"), [], "continue", False, True, EndOverdue(), id="the run's limit ended it"),
        pytest.param(OK, [NEXT], "stop", True, True, FinishRun(), id="cancelled and overdue is cancelled"),
    ],
)
def test_the_facts_decide_what_follows(
    outcome: Outcome,
    pending: list[BashStep],
    *,
    on_failure: Literal["stop", "continue"],
    cancelling: bool,
    overdue: bool,
    follows: StartNext | FinishRun | EndOverdue,
) -> None:
    assert after_step(outcome, pending, on_failure=on_failure, cancelling=cancelling, overdue=overdue) == follows


@pytest.mark.parametrize(
    ("remaining_s", "granted"),
    [
        pytest.param(600.0, Allowance(timeout_s=60, ends_run=False), id="the step's own limit"),
        pytest.param(12.5, Allowance(timeout_s=12.5, ends_run=True), id="what is left of the run"),
        pytest.param(-3.0, Allowance(timeout_s=0, ends_run=True), id="nothing is left"),
    ],
)
def test_a_step_runs_no_longer_than_its_run(remaining_s: float, granted: Allowance) -> None:
    assert allowance(NEXT, remaining_s=remaining_s) == granted
