"""The bodies of `/v1/memories` that are no message of the memory service as it is."""

from pydantic import Field

from caisson.common.errors import InvalidInput
from caisson.common.memories import MemoryFields, MemoryView, NewMemory
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


class MemoryList(Message):
    """A page of memories, newest first."""

    items: list[MemoryView]
    next_cursor: str | None
