"""From the kernel's accounting of an ended command to its outcome.

Invariant: nothing is guessed from an exit code; each outcome has the kernel's or the runner's own record behind it.
"""

import os
import signal
from dataclasses import dataclass
from enum import StrEnum

from caisson.common.leases import Limits
from caisson.common.outcome import (
    Cancelled,
    DiskFull,
    Exited,
    NotStarted,
    OomKilled,
    Outcome,
    PidsExhausted,
    Signalled,
    TimedOut,
)


class KillCause(StrEnum):
    """Why the runner killed a box."""

    TIME = "time"
    CANCEL = "cancel"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEvents:
    """What the command's cgroup counted: processes killed for memory, and forks refused."""

    oom_kills: int = 0
    refused_forks: int = 0

    def __bool__(self) -> bool:
        return self.oom_kills > 0 or self.refused_forks > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What process 1 of the box told: whether it started the shell, and the shell's wait status."""

    failure: str | None = None
    started: bool = False
    wait_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """All that is known about an ended command."""

    report: Report
    events: LimitEvents
    disk_full: bool
    killed_for: KillCause | None
    timeout_s: float
    limits: Limits


def read_report(text: str) -> Report:
    """Read the lines that process 1 of the box wrote."""
    lines = {word: detail for word, _, detail in (line.partition(" ") for line in text.splitlines())}
    status = lines.get("ended")
    return Report(
        failure=lines.get("failed"),
        started="started" in lines and "failed" not in lines,
        wait_status=int(status) if status is not None else None,
    )


def outcome_of(ending: Ending) -> Outcome:
    """Return how the command ended."""
    if ending.killed_for is KillCause.TIME and not _ended_by_itself(ending.report):
        return TimedOut(reason=f"the time limit of {ending.timeout_s:g} s passed; everything in the box was killed")
    if ending.killed_for is KillCause.CANCEL and not _ended_by_itself(ending.report):
        return Cancelled()
    if ending.events.oom_kills:
        return OomKilled(
            reason=f"the memory limit of {ending.limits.memory_mib} MiB was reached; files that the command wrote"
            " to /workspace, /tmp and /dev/shm count"
        )
    if ending.events.refused_forks:
        return PidsExhausted(reason=f"the limit of {ending.limits.pids} processes was reached")
    if not ending.report.started:
        return NotStarted(reason=f"the box could not be set up: {ending.report.failure or 'bubblewrap failed'}")
    return _outcome_of_shell(ending)


def _outcome_of_shell(ending: Ending) -> Outcome:
    status = ending.report.wait_status
    if status is None:  # process 1 itself was killed, from outside and not by the runner
        return Signalled(signal=signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    if code != 0 and ending.disk_full:
        return DiskFull(
            exit_code=code if code > 0 else None,
            reason=f"the workspace is full: its limit is {ending.limits.disk_mib} MiB",
        )
    return Exited(exit_code=code) if code >= 0 else Signalled(signal=-code)


def _ended_by_itself(report: Report) -> bool:
    """Say whether the shell had ended before the runner's SIGKILL reached it."""
    status = report.wait_status
    return status is not None and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
