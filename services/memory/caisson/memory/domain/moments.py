"""Times that callers give. Invariant: what passes can be stored, indexed, compared and shown in any zone.

The first and the last year are refused: there, a zone leaves the calendar, and PostgreSQL's driver has the very first
and last moment stand for infinity.
"""

from datetime import UTC, datetime
from typing import overload

from caisson.common.errors import InvalidInput

FIRST_YEAR = 2
LAST_YEAR = 9998


@overload
def in_utc(value: datetime, field: str) -> datetime: ...


@overload
def in_utc(value: datetime | None, field: str) -> datetime | None: ...


def in_utc(value: datetime | None, field: str) -> datetime | None:
    """Return an aware time in UTC, or raise InvalidInput where its year is refused."""
    if value is None:
        return None
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise InvalidInput(f"{field} is outside the years {FIRST_YEAR} to {LAST_YEAR}", field=field)
    return value.astimezone(UTC)
