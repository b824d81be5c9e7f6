"""How things are told to people: outcomes, durations, errors. Pure."""

import signal
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from caisson.client.commands.terminal import foreign
from caisson.client.errors import ApiError, CaissonError
from caisson.client.models import Outcome, Run

_SECOND_MS = 1000
_MINUTE_S = 60
_STYLES = {
    "queued": "dim",
    "pending": "dim",
    "running": "cyan",
    "waiting": "yellow",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "unknown": "magenta",
}


def outcome_text(outcome: Outcome | None) -> str:
    """Return an outcome in words."""
    match outcome:
        case None:
            return "no outcome"
        case Outcome(kind="exited", exit_code=code):
            return f"exited {code}"
        case Outcome(kind="signalled", signal=int(number)):
            return f"ended by signal {number}{_signal_name(number)}"
        case Outcome(kind="blocked", guard=guard, reason=reason):
            return f"blocked by guard {guard}: {reason}"
        case Outcome(kind=kind, reason=reason):
            return f"{kind.replace('_', ' ')}{f': {reason}' if reason else ''}"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def duration_text(duration_ms: float | None) -> str:
    """Return a duration with three digits at most."""
    if duration_ms is None:
        return ""
    if duration_ms < _SECOND_MS:
        return f"{duration_ms:.0f} ms"
    seconds = duration_ms / _SECOND_MS
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"


def status_text(status: str) -> Text:
    """Return a status in its colour."""
    return foreign(status, _STYLES.get(status, ""))


def time_text(time: datetime | None) -> str:
    """Return a time in the reader's time zone."""
    return "" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def run_duration_ms(run: Run) -> float | None:
    """Return how long a run took from its start to its end."""
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds() * _SECOND_MS


def run_error_text(run: Run) -> str:
    """Return why a run failed."""
    if not isinstance(run.error, dict):
        return str(run.error or "")
    return " — ".join(str(run.error[name]) for name in ("code", "detail") if run.error.get(name))


def error_block(error: CaissonError) -> RenderableType:
    """Return an error with its code, and a line for each field with its limit, where that says more."""
    head = Text.assemble(("error", "bold red"), " ", (error.code, "bold"), ": ", foreign(error.detail))
    if not isinstance(error, ApiError):
        return head
    fields = [
        Text.assemble("  ", (foreign(item.field).plain, "cyan"), ": ", foreign(item.message))
        for item in error.errors
        if item.message != error.detail
    ]
    return Group(head, *fields)


def error_document(error: CaissonError) -> dict[str, object]:
    """Return an error for machines."""
    document: dict[str, object] = {"code": error.code, "detail": error.detail}
    if isinstance(error, ApiError):
        document["status"] = error.status
        document["errors"] = [{"field": item.field, "message": item.message} for item in error.errors]
    return document
