"""The base of everything that crosses a process boundary as JSON.

Invariant: messages are frozen, refuse unknown fields, and never coerce a type.
"""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from caisson.common.errors import InvalidId
from caisson.common.ids import check_external_id


class Message(BaseModel):
    """A frozen, strict wire model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL characters")
    return value


Text = Annotated[str, AfterValidator(_no_nul)]
"""A string that PostgreSQL can store: no NUL (lone surrogates are refused by the JSON edge)."""


def _id(value: str) -> str:
    try:
        return check_external_id(value, field="it")
    except InvalidId as error:
        raise ValueError(error.detail) from error


Id = Annotated[str, AfterValidator(_id)]
"""An id that may become a token of a subject: 1 to 128 printable characters of any script."""


def _storable(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\x00", "\ufffd")
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {_storable(name): _storable(item) for name, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return value


Told = Annotated[str, AfterValidator(_storable)]
"""What a service tells about foreign input: a NUL in it becomes U+FFFD, so that the report is never refused."""

ToldFacts = Annotated[dict[str, Any], AfterValidator(_storable)]
"""The same for facts of any form; a number that JSON does not have becomes its name."""
