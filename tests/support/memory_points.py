"""Builders for what a memory index holds and is asked."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.indexing import EmbedderIdentity, IndexQuery, Point
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter, Principal

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DIMENSIONS = 32
IDENTITY = EmbedderIdentity(name="test", dimensions=DIMENSIONS, digest="0" * 64)


def vector_of(text: str) -> list[float]:
    """A direction that the text alone decides."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    direction = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    vector: list[float] = (direction / np.linalg.norm(direction)).tolist()
    return vector


def a_tenant(name: str = "t") -> TenantId:
    """A tenant that no other test has."""
    return TenantId(f"{name}-{uuid4().hex[:12]}")


def a_point(tenant: TenantId, text: str, memory_id: str | None = None, **changes: Any) -> Point:
    """One chunk, visible to its whole tenant unless changed."""
    values: dict[str, Any] = {
        "memory_id": memory_id or f"mem-{uuid4().hex[:12]}",
        "chunk": 0,
        "version": 1,
        "tenant": tenant,
        "scopes": frozenset({"tenant"}),
        "layer": Layer.SEMANTIC,
        "valid_from": NOW - timedelta(days=30),
        "valid_to": None,
        "expires_at": None,
        "text": text,
        "dense": vector_of(text),
    }
    return Point(**(values | changes))


def a_filter(
    tenant: TenantId,
    user: str = "ana",
    granted: Iterable[str] = (),
    *,
    now: datetime = NOW,
    as_of: datetime | None = None,
    layers: Iterable[Layer] = (),
) -> HardFilter:
    """The hard filter of a caller."""
    principal = Principal(tenant=tenant, user=UserId(user), granted=frozenset(granted))
    return HardFilter(principal=principal, now=now, as_of=as_of or now, layers=frozenset(layers))


def asking(text: str, *, limit: int = 20, dense: bool = True, sparse: bool = True) -> IndexQuery:
    """A search by both legs, or by one of them."""
    return IndexQuery(dense=vector_of(text) if dense else None, text=text if sparse else None, limit=limit)
