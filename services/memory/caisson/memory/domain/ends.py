"""Until when a corrected memory is true, and until when it is kept.

Invariant: no two facts of one subject and attribute are true at once, and no summary outlives what it was made from.
"""

from dataclasses import dataclass
from datetime import datetime

from caisson.common.errors import Conflict, InvalidInput
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.lifetimes import SESSION_LIMIT


@dataclass(frozen=True, slots=True)
class Endless:
    """No end: one that there was is taken away."""


End = datetime | Endless


def check_valid_to(end: End, *, valid_from: datetime, next_from: datetime | None) -> None:
    """Hold the end of a truth against its beginning and against the beginning of the fact that follows.

    Raises:
        InvalidInput: when it does not come after the beginning.
        Conflict: when the next fact begins before it.
    """
    if isinstance(end, datetime) and end <= valid_from:
        raise InvalidInput("valid_to must come after valid_from", field="valid_to")
    if next_from is not None and (isinstance(end, Endless) or end > next_from):
        raise Conflict(f"valid_to: another fact of this subject and attribute is true from {next_from.isoformat()}")


def check_expires_at(end: End, *, layer: Layer, now: datetime, sources_end: datetime | None) -> None:
    """Hold the end of keeping against what bounds it: a session, or the first source of a summary that expires.

    Raises:
        InvalidInput: when it comes after that.
    """
    if layer is Layer.SESSION:
        check_session_end(end, now, field="expires_at")
    if sources_end is not None and (isinstance(end, Endless) or end > sources_end):
        told = f"expires_at: what the summary was made from is kept until {sources_end.isoformat()}"
        raise InvalidInput(told, field="expires_at")


def check_session_end(end: End, now: datetime, *, field: str) -> None:
    """Raise InvalidInput where a session's memory would outlast a session whose end was never told."""
    if isinstance(end, Endless) or end > now + SESSION_LIMIT:
        told = f"{field}: a memory of a session ends with it, and {SESSION_LIMIT.days} days from now at the latest"
        raise InvalidInput(told, field=field)
