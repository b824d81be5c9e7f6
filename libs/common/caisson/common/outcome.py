"""How a step ended: a closed set, and the output that came with it."""

from enum import StrEnum
from typing import Annotated, Literal, assert_never

from pydantic import Field

from caisson.common.messages import Message, Text, Told


class Exited(Message):
    """The shell ended by itself."""

    kind: Literal["exited"] = "exited"
    exit_code: int


class Signalled(Message):
    """A signal that Caisson did not send ended the shell."""

    kind: Literal["signalled"] = "signalled"
    signal: int


class TimedOut(Message):
    """The step's time limit passed; everything in the box was killed."""

    kind: Literal["timed_out"] = "timed_out"
    reason: Told


class Cancelled(Message):
    """The run was cancelled while the step was pending or running."""

    kind: Literal["cancelled"] = "cancelled"
    reason: Told = "the run was cancelled"


class OomKilled(Message):
    """The kernel killed a process of the box at the memory limit; the box was ended."""

    kind: Literal["oom_killed"] = "oom_killed"
    reason: Told


class PidsExhausted(Message):
    """The box reached its process limit; the box was ended."""

    kind: Literal["pids_exhausted"] = "pids_exhausted"
    reason: Told


class DiskFull(Message):
    """The command failed with its workspace full."""

    kind: Literal["disk_full"] = "disk_full"
    exit_code: int | None = None
    reason: Told


class Blocked(Message):
    """A guard refused the command; it never ran."""

    kind: Literal["blocked"] = "blocked"
    guard: Told
    reason: Told


class NotStarted(Message):
    """The box could not be set up; the command never ran."""

    kind: Literal["not_started"] = "not_started"
    reason: Told


class Lost(Message):
    """The worker died while the step ran; whether its effects happened is unknown."""

    kind: Literal["lost"] = "lost"
    reason: Told = "the worker died while the step ran"


Outcome = Annotated[
    Exited | Signalled | TimedOut | Cancelled | OomKilled | PidsExhausted | DiskFull | Blocked | NotStarted | Lost,
    Field(discriminator="kind"),
]


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


def status_of(outcome: Outcome) -> StepStatus:
    """Return the step status that an outcome means: only `exited(0)` is success, `lost` is unknown."""
    match outcome:
        case Exited(exit_code=0):
            return StepStatus.SUCCEEDED
        case Cancelled():
            return StepStatus.CANCELLED
        case Lost():
            return StepStatus.UNKNOWN
        case (
            Exited()
            | Signalled()
            | TimedOut()
            | OomKilled()
            | PidsExhausted()
            | DiskFull()
            | Blocked()
            | NotStarted()
        ):
            return StepStatus.FAILED
    assert_never(outcome)


class Output(Message):
    """One captured stream: a head and a tail of it as text, and the truth about the rest.

    `bytes` counts the whole stream. When `truncated`, the text has a gap after its first `gap_at` characters.
    `lossy` says that invalid UTF-8 or NUL was replaced by U+FFFD in the text.
    """

    text: Text = ""
    bytes: int = 0
    truncated: bool = False
    lossy: bool = False
    gap_at: int | None = None
