"""What the client sends about memory, typed. Fields that are not given are not sent."""

from typing import Any

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
    """The body of `PATCH /v1/memories/{id}`; what is not given stays."""

    expected_version: int | None = None
    text: str | None = None
    importance: float | None = None
    confidence: float | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None


class Recall(Request):
    """The body of `POST /v1/memories/search` and `/context`."""

    query: str
    k: int | None = None
    token_budget: int | None = None
    layers: list[str] | None = None
    as_of: Time | None = None
    session_id: str | None = None
    on_degraded: str | None = None
