"""Rows of the store as domain records, and drafts and hard filters as what its statements take."""

from collections.abc import Mapping
from typing import Any

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.drafting import Draft
from caisson.memory.domain.layers import Layer, Status
from caisson.memory.domain.memories import Change, Memory, Origin
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.standing import Standing

Row = Mapping[str, Any]


def gate(filter_: HardFilter) -> dict[str, Any]:
    """Return `tenant`, `allowed` and `now`: whom `memory.readable` reads for."""
    principal = filter_.principal
    return {"tenant": principal.tenant, "allowed": sorted(principal.allowed), "now": filter_.now}


def hard(filter_: HardFilter) -> dict[str, Any]:
    """Return everything that `memory.visible` takes."""
    return gate(filter_) | {"as_of": filter_.as_of, "layers": sorted(filter_.layers)}


def memory_of(row: Row) -> Memory:
    """Read a memory with its sources."""
    return Memory(
        memory_id=row["memory_id"],
        external_id=row["external_id"],
        tenant=TenantId(row["tenant_id"]),
        user=UserId(row["user_id"]),
        owner_scope=row["owner_scope"],
        scopes=tuple(row["scopes"]),
        layer=Layer(row["layer"]),
        status=Status(row["status"]),
        text=row["text"],
        content_hash=row["content_hash"],
        subject=row["subject"],
        attribute=row["attribute"],
        outcome=row["outcome"],
        confirmations=row["confirmations"],
        importance=row["importance"],
        confidence=row["confidence"],
        trust=row["trust"],
        q=row["q"],
        visits=row["visits"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        expires_at=row["expires_at"],
        tags=tuple(row["tags"]),
        metadata=row["metadata"],
        origin=Origin(
            kind=row["provenance_kind"], run_id=row["run_id"], session_id=row["session_id"], source=row["source"]
        ),
        sources=tuple(row["sources"]),
        superseded_by=row["successor"],
        version=row["version"],
        used_at=row["used_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def change_of(row: Row) -> Change:
    """Read one version of a history."""
    return Change(
        memory_id=row["memory_id"],
        version=row["version"],
        change=row["change"],
        text=row["text"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        at=row["at"],
    )


def standing_of(row: Row) -> Standing:
    """Read what stands in a draft's place."""
    return Standing(
        memory_id=row["memory_id"],
        layer=Layer(row["layer"]),
        scope_key=row["scope_key"],
        content_hash=row["content_hash"],
        context_key=row["context_key"],
        fact_key=row["fact_key"],
        valid_to=row["valid_to"],
        is_object=row["is_object"],
        is_external=row["is_external"],
    )


def values_of(draft: Draft) -> dict[str, Any]:
    """Return what a draft says, as the statements that store it take it."""
    return {
        "scopes": list(draft.scopes),
        "scope_key": draft.scope_key,
        "layer": draft.layer,
        "text": draft.wording.text,
        "content_hash": draft.wording.content_hash,
        "terms": draft.wording.terms,
        "trust": draft.wording.trust,
        "context_key": draft.context_key,
        "subject": draft.subject,
        "attribute": draft.attribute,
        "fact_key": draft.fact_key,
        "outcome": draft.outcome,
        "confirmations": draft.confirmations,
        "importance": draft.importance,
        "confidence": draft.confidence,
        "expires_at": draft.expires_at,
        "tags": list(draft.tags),
        "metadata": draft.metadata,
        "provenance_kind": draft.origin.kind,
        "run": draft.origin.run_id,
        "session": draft.origin.session_id,
        "source": draft.origin.source,
    }
