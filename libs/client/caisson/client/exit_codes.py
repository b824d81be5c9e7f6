"""The exit code of `caisson exec` and `caisson run`: that of the step that decided, as a shell would tell it.

Invariant: 0 means that the run succeeded, and nothing else does.
"""

from caisson.client.models import Outcome, Run, RunStatus, StepStatus

API_ERROR = 1
USAGE = 2
UNKNOWN = 75
TIMED_OUT = 124
NOT_STARTED = 125
BLOCKED = 126
SIGNALLED = 128
CANCELLED = 130
LIMIT_REACHED = 137

_BY_KIND = {
    "timed_out": TIMED_OUT,
    "cancelled": CANCELLED,
    "oom_killed": LIMIT_REACHED,
    "pids_exhausted": LIMIT_REACHED,
    "disk_full": LIMIT_REACHED,
    "blocked": BLOCKED,
    "not_started": NOT_STARTED,
    "lost": UNKNOWN,
}
_BY_RUN_ERROR = {"run_timeout": TIMED_OUT, "worker_lost": UNKNOWN, "step_unknown": UNKNOWN}


def of_outcome(outcome: Outcome | None) -> int:
    """Return the exit code for a step's outcome; one that this client does not know is unknown."""
    match outcome:
        case Outcome(kind="exited", exit_code=int(code)):
            return code & 0xFF
        case Outcome(kind="signalled", signal=int(signal)):
            return SIGNALLED + signal
        case Outcome(kind=kind):
            return _BY_KIND.get(kind, UNKNOWN)
    return UNKNOWN


def of_run(run: Run) -> int:
    """Return the exit code for a finished run: that of its first step that did not succeed."""
    if run.succeeded:
        return 0
    if run.status == RunStatus.CANCELLED:
        return CANCELLED
    code = run.error.get("code") if isinstance(run.error, dict) else None
    if code in _BY_RUN_ERROR:
        return _BY_RUN_ERROR[code]
    for step in run.steps:
        if step.status in {StepStatus.FAILED, StepStatus.UNKNOWN}:
            return of_outcome(step.outcome) or API_ERROR
    return API_ERROR
