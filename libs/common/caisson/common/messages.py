"""The base of everything that crosses a process boundary as JSON.

Invariant: messages are frozen, refuse unknown fields, and never coerce a type.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Message(BaseModel):
    """A frozen, strict wire model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL characters")
    return value


Text = Annotated[str, AfterValidator(_no_nul)]
"""A string that PostgreSQL can store: no NUL (lone surrogates are refused by the JSON edge)."""
