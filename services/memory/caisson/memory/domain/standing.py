"""What becomes of a draft where something stands already. Pure: the rows around its place in, a decision out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from caisson.memory.domain.drafting import Draft
from caisson.memory.domain.layers import FACTUAL, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A stored memory of the draft's owner with its external id, its text, or the same in other words.

    `is_object`: it has an external id; `is_external`: it has the draft's.
    """

    memory_id: str
    layer: Layer
    scope_key: bytes
    content_hash: bytes
    context_key: bytes
    fact_key: bytes | None
    valid_to: datetime | None
    is_object: bool
    is_external: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """The draft says nothing new: it confirms this memory."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restate:
    """The product's object with this id has a new text."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """The draft is a memory of its own; `ended` gives way."""

    ended: tuple[str, ...]


def settle(draft: Draft, standing: Sequence[Standing], now: datetime) -> Confirm | Restate | Add:
    """Decide about a draft.

    The same text is the same memory, except that a fact stands apart from another fact, an episode from that of
    another run, and a session's from another session's. A memory that has ended, or that says less about what the
    text is a fact of, gives way to the draft. An object of the product's is changed and ended by its own id alone.
    """
    if draft.external_id is not None:
        return _settle_object(draft, next((row for row in standing if row.is_external), None))
    starts = draft.valid_from or now
    ended = []
    for row in standing:
        if row.valid_to is not None and row.valid_to <= starts:
            ended += [row.memory_id] if row.context_key == draft.context_key and not row.is_object else []
        elif row.context_key == draft.context_key or _adds_no_fact(draft):
            return Confirm(memory_id=row.memory_id)
        elif row.fact_key is None and draft.is_fact and not row.is_object:
            ended.append(row.memory_id)
    return Add(ended=tuple(ended))


def _settle_object(draft: Draft, stored: Standing | None) -> Confirm | Restate | Add:
    if stored is None:
        return Add(ended=())
    if _says_the_same(draft, stored):
        return Confirm(memory_id=stored.memory_id)
    return Restate(memory_id=stored.memory_id)


def _says_the_same(draft: Draft, row: Standing) -> bool:
    return (row.layer, row.scope_key, row.content_hash, row.context_key) == (
        draft.layer,
        draft.scope_key,
        draft.wording.content_hash,
        draft.context_key,
    )


def _adds_no_fact(draft: Draft) -> bool:
    return draft.fact_key is None and draft.layer in FACTUAL
