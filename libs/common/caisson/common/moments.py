"""Times in messages. Invariant: a time that comes in has its offset, and one that goes out is in UTC."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, PlainSerializer

_BEGINS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:")


def _no_number(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _BEGINS_LIKE_A_TIME.match(value)):
        return value
    raise ValueError("must be a time in RFC 3339")


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number), Field(strict=False)]
"""A time with its offset, as text where it comes from JSON; never a number of seconds."""


def _milliseconds(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Shown = Annotated[datetime, PlainSerializer(_milliseconds, return_type=str, when_used="json")]
"""A time as readers see it: in UTC, with milliseconds."""
