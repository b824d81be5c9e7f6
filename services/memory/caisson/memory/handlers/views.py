"""Memories as their readers see them."""

from caisson.common.memories import HistoryEntry, MemoryView, ShownProvenance
from caisson.memory.domain.memories import Change, Memory


def view_of(memory: Memory) -> MemoryView:
    """Show a memory that its reader may see."""
    origin = memory.origin
    return MemoryView(
        id=memory.memory_id,
        external_id=memory.external_id,
        layer=memory.layer.value,
        status=memory.status.value,
        text=memory.text,
        scopes=list(memory.scopes),
        subject=memory.subject,
        attribute=memory.attribute,
        importance=memory.importance,
        confidence=memory.confidence,
        trust=memory.trust,
        q=memory.q,
        visits=memory.visits,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        expires_at=memory.expires_at,
        tags=list(memory.tags),
        metadata=dict(memory.metadata),
        provenance=ShownProvenance(
            kind=origin.kind, run_id=origin.run_id, session_id=origin.session_id, source=origin.source
        ),
        sources=list(memory.sources),
        superseded_by=memory.superseded_by,
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )


def entry_of(change: Change) -> HistoryEntry:
    """Show one version."""
    return HistoryEntry(
        memory_id=change.memory_id,
        version=change.version,
        change=change.change,
        text=change.text,
        valid_from=change.valid_from,
        valid_to=change.valid_to,
        at=change.at,
    )
