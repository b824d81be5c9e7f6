"""The bodies of `/v1/memories` that are no message of the memory service as it is."""

from typing import Any, get_args

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from caisson.common.errors import InvalidInput
from caisson.common.memories import Caller, Changes, MemoryFields, MemoryView, NewMemory, PatchMemory, Removable
from caisson.common.messages import Message, Text
from caisson.common.moments import Moment

_REMOVABLE: tuple[str, ...] = get_args(Removable)


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


def _only_ends_may_be_null(schema: dict[str, Any]) -> None:
    for name in schema["properties"].keys() - set(_REMOVABLE):
        described = schema["properties"][name]
        [kind] = [kind for kind in described.pop("anyOf") if kind != {"type": "null"}]
        described.update(kind)


class ChangesRequest(Changes):
    """The body of PATCH /v1/memories/{id}. What is left out stays; null removes an end, and is refused elsewhere: it
    would read as an order and change nothing.
    """

    model_config = ConfigDict(json_schema_extra=_only_ends_may_be_null)

    valid_to: Moment | None = Field(default=None, description="until when it is true; null: without an end")
    expires_at: Moment | None = Field(default=None, description="until when it is kept; null: for good")

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: Any, told: ValidationInfo) -> Any:
        if value is None and told.field_name not in _REMOVABLE:
            raise ValueError("must not be null; what is left out stays")
        return value

    def message(self, caller: Caller, memory_id: str) -> PatchMemory:
        """Return what the memory service is asked; there, what is removed is named, and None stays."""
        given = self.model_dump(exclude_unset=True)
        removes = [name for name in _REMOVABLE if name in given and given[name] is None]
        return PatchMemory.model_validate({"caller": caller, "id": memory_id, "removes": removes} | given)


class MemoryList(Message):
    """A page of memories, newest first."""

    items: list[MemoryView]
    next_cursor: str | None
