"""What the client sends about memory, typed. Fields that are not given are not sent."""

from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from caisson.client.models import Time
from caisson.client.requests import Request


class NewMemory(Request):
    """One thing to remember. Without `scopes` it is the user's own."""

    text: str
    layer: str | None = None
    scopes: list[str] | None = None
    subject: str | None = None
    attribute: str | None = None
    importance: float | None = None
    confidence: float | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    external_id: str | None = None
    provenance: dict[str, Any] | None = None
    outcome: str | None = None
    confirmations: int | None = None


class MemoryChanges(Request):
    """The body of `PATCH /v1/memories/{id}`; what is not given stays, and what `remove` names has no end any more."""

    expected_version: int | None = None
    text: str | None = None
    importance: float | None = None
    confidence: float | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None
    remove: list[Literal["valid_to", "expires_at"]] = []

    @field_validator("remove")
    @classmethod
    def _refuse_both(cls, remove: list[str], told: ValidationInfo) -> list[str]:
        if both := [name for name in remove if told.data.get(name) is not None]:
            raise ValueError(f"{both[0]} is both given and removed")
        return remove

    def body(self) -> dict[str, Any]:
        """Return the JSON body, in which null removes."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"remove"}) | dict.fromkeys(self.remove)


class Recall(Request):
    """The body of `POST /v1/memories/search` and `/context`."""

    query: str
    k: int | None = None
    token_budget: int | None = None
    layers: list[str] | None = None
    as_of: Time | None = None
    session_id: str | None = None
    on_degraded: str | None = None
