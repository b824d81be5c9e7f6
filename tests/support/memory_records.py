"""Memories as domain records, with everything filled in that a test does not care about."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.layers import Layer, Status
from caisson.memory.domain.memories import Memory, Origin
from caisson.memory.domain.recalls import Found

_PLAIN = Memory(
    memory_id="mem_00000000000000000000000001",
    external_id=None,
    tenant=TenantId("acme"),
    user=UserId("ana"),
    owner_scope="user:ana",
    scopes=("user:ana",),
    layer=Layer.SEMANTIC,
    status=Status.ACTIVE,
    text="Ana lives in Oslo",
    content_hash=bytes(32),
    subject=None,
    attribute=None,
    outcome=None,
    confirmations=0,
    importance=0.5,
    confidence=1.0,
    trust=1.0,
    q=0.0,
    visits=0,
    valid_from=datetime(2026, 1, 1, tzinfo=UTC),
    valid_to=None,
    expires_at=None,
    tags=(),
    metadata={},
    origin=Origin(),
    sources=(),
    superseded_by=None,
    version=1,
    used_at=datetime(2026, 1, 1, tzinfo=UTC),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def memory(**fields: Any) -> Memory:
    """Return a memory of ana of acme."""
    return replace(_PLAIN, **fields)


def found(*, similarity: float, is_exact: bool = False, **fields: Any) -> Found:
    """Return a memory as a recall found it."""
    return Found(memory=memory(**fields), cosine=None, lexical=None, similarity=similarity, is_exact=is_exact)
