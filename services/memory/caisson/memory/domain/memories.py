"""What is remembered, as the store keeps it. Every field of a memory that a reader may see is here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.layers import Layer, Status

ProvenanceKind = Literal["person", "run", "tool", "consolidation", "distillation", "import"]

SUMMARIES: frozenset[ProvenanceKind] = frozenset({"consolidation", "distillation"})
"""What is made again where a source of it changes, and ends when the first of them does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a memory comes from. `source` may name another memory."""

    kind: ProvenanceKind = "person"
    run_id: str | None = None
    session_id: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One stored memory. `owner_scope` is whose it is; `user` is who is charged for it; `q` is in [-1, 1]."""

    memory_id: str
    external_id: str | None
    tenant: TenantId
    user: UserId
    owner_scope: str
    scopes: tuple[str, ...]
    layer: Layer
    status: Status
    text: str
    content_hash: bytes
    subject: str | None
    attribute: str | None
    outcome: str | None
    confirmations: int
    importance: float
    confidence: float
    trust: float
    q: float
    visits: int
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    origin: Origin
    sources: tuple[str, ...]
    superseded_by: str | None
    version: int
    used_at: datetime
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One version of a memory as its history keeps it; `text` is None where it was forgotten."""

    memory_id: str
    version: int
    change: str
    text: str | None
    valid_from: datetime
    valid_to: datetime | None
    at: datetime


def in_force(changes: Iterable[Change], as_of: datetime) -> list[Change]:
    """Return what was believed at a time: of each memory the version known then, if it was in force.

    A memory that was recorded later, about an earlier time, counts by its first version.
    """
    known: dict[str, Change] = {}
    for change in sorted(changes, key=lambda change: change.version):
        if change.memory_id not in known or change.at <= as_of:
            known[change.memory_id] = change
    return [
        change
        for change in known.values()
        if change.valid_from <= as_of and (change.valid_to is None or change.valid_to > as_of)
    ]
