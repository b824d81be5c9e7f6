"""The bodies of `/v1/memories` that are no message of the memory service as it is."""

from typing import Any

from pydantic import Field, field_validator

from caisson.common.errors import InvalidInput
from caisson.common.memories import Changes, MemoryFields, MemoryView, NewMemory
from caisson.common.messages import Message, Text


class RememberRequest(MemoryFields):
    """The body of POST /v1/memories: one memory, or up to a hundred in `memories`."""

    text: Text | None = None
    memories: list[NewMemory] | None = Field(default=None, min_length=1, max_length=100)

    @property
    def is_one(self) -> bool:
        """Whether one memory is given, and not a list."""
        return self.memories is None

    def given(self) -> list[NewMemory]:
        """Return the memories; raises InvalidInput where it is neither one nor a list of them."""
        if self.memories is not None:
            if beside := self.model_fields_set - {"memories"}:
                raise InvalidInput("must not stand beside memories", field=min(beside))
            return self.memories
        if self.text is None:
            raise InvalidInput("give text, or a list of memories", field="text")
        return [NewMemory.model_validate(self.model_dump(exclude={"memories"}, exclude_unset=True))]


class ChangesRequest(Changes):
    """The body of PATCH /v1/memories/{id}. What is left out stays; null would read as an order and change nothing."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("must not be null; what is left out stays")
        return value


class MemoryList(Message):
    """A page of memories, newest first."""

    items: list[MemoryView]
    next_cursor: str | None
