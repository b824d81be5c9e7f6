"""What becomes of a draft where something stands already. Pure: the rows around its place in, a decision out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from caisson.memory.domain.drafting import Draft
from caisson.memory.domain.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A stored memory of the draft's owner with its external id, its text, or the same in other words."""

    memory_id: str
    layer: Layer
    scope_key: bytes
    content_hash: bytes
    context_key: bytes
    fact_key: bytes | None
    valid_to: datetime | None
    is_external: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """The draft says nothing new: it confirms this memory."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restate:
    """The product's object with this id has a new text; `ended` gives way."""

    memory_id: str
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """The draft is a memory of its own; `ended` gives way."""

    ended: tuple[str, ...]


def settle(draft: Draft, standing: Sequence[Standing], now: datetime) -> Confirm | Restate | Add:
    """Decide about a draft.

    The same text is the same memory, except that a fact stands apart from another fact, an episode from that of
    another run, and a session's from another session's. A memory that has ended, or that says less about what the
    text is a fact of, gives way to the draft.
    """
    starts = draft.valid_from or now
    ended = []
    external = next((row for row in standing if row.is_external), None)
    for row in standing:
        if external is not None and row.memory_id == external.memory_id:
            if _says_the_same(draft, row):
                return Confirm(memory_id=row.memory_id)
        elif row.valid_to is not None and row.valid_to <= starts:
            ended += [row.memory_id] if row.context_key == draft.context_key else []
        elif row.context_key == draft.context_key or _adds_no_fact(draft):
            if external is None:
                return Confirm(memory_id=row.memory_id)
            ended.append(row.memory_id)
        elif row.fact_key is None and draft.is_fact:
            ended.append(row.memory_id)
    if external is not None:
        return Restate(memory_id=external.memory_id, ended=tuple(ended))
    return Add(ended=tuple(ended))


def _says_the_same(draft: Draft, row: Standing) -> bool:
    return (row.layer, row.scope_key, row.content_hash, row.context_key) == (
        draft.layer,
        draft.scope_key,
        draft.wording.content_hash,
        draft.context_key,
    )


def _adds_no_fact(draft: Draft) -> bool:
    return draft.fact_key is None and draft.layer in {Layer.SEMANTIC, Layer.PROCEDURAL}
