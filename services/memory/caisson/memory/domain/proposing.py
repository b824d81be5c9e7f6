"""What is near to a draft: the index proposes, the rules of `near` decide. Without an index nothing is proposed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from caisson.common.errors import InvalidInput, Unavailable
from caisson.memory.domain.drafting import Draft, Twin
from caisson.memory.domain.hashing import fact_key
from caisson.memory.domain.indexing import Embedder, Index, IndexQuery, Vector
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.near import PROPOSED_FROM, Same, decide
from caisson.memory.domain.phrasing import phrase
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.reading import Reading

_COMPARED_LAYERS = {Layer.SEMANTIC, Layer.PROCEDURAL}
_CANDIDATES = 5
_MAX_CHARS = 4_000
_WITHIN_S = 3.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Drafts with what is near to them; `is_up` is false where embedder or index did not answer."""

    drafts: list[Draft]
    is_up: bool


class Proposing:
    """Finds what is stored already in other words."""

    def __init__(self, reading: Reading, embedder: Embedder, index: Index) -> None:
        self._reading = reading
        self._embedder = embedder
        self._index = index

    async def compare(self, drafts: Sequence[Draft], filter_: HardFilter) -> Compared:
        """Return the drafts, each with the memory that says the same or, failing that, the nearest one."""
        chosen = {position: draft for position, draft in enumerate(drafts) if _is_compared(draft)}
        compared: dict[int, Draft] = {}
        try:
            async with asyncio.timeout(_WITHIN_S):
                texts = [draft.wording.text for draft in chosen.values()]
                firsts = await beside(texts, lambda: [self._first_chunk(draft) for draft in chosen.values()])
                vectors = await self._embedder.embed(firsts)
                for (position, draft), vector in zip(chosen.items(), vectors, strict=True):
                    compared[position] = await self._compare(draft, vector, filter_)
        except (InvalidInput, Unavailable, TimeoutError) as error:
            log.warning("proposing.skipped", reason=repr(error), drafts=len(chosen) - len(compared))
            is_up = isinstance(error, InvalidInput)
            return Compared(drafts=_merged(drafts, compared), is_up=is_up)
        return Compared(drafts=_merged(drafts, compared), is_up=True)

    async def _compare(self, draft: Draft, vector: Vector, filter_: HardFilter) -> Draft:
        narrowed = replace(filter_, layers=frozenset({draft.layer}))
        asked = IndexQuery(dense=vector, text=None, limit=_CANDIDATES)
        found = (await self._index.search(asked, narrowed)).found
        near = [one for one in found if one.cosine is not None and one.cosine >= PROPOSED_FROM]
        if not near:
            return draft
        memories = (await self._reading.confirm([one.memory_id for one in near], narrowed)).memories
        ranked = [memories[one.memory_id] for one in near if one.memory_id in memories]
        for memory in ranked:
            if _same_place(draft, memory) and isinstance(decide(draft.wording.text, memory.text), Same):
                return replace(draft, twin=Twin(memory_id=memory.memory_id, version=memory.version))
        return replace(draft, similar_to=ranked[0].memory_id) if ranked else draft

    def _first_chunk(self, draft: Draft) -> str:
        chunks = self._embedder.chunks(phrase(draft.wording.text, draft.subject, draft.attribute))
        return chunks[0] if chunks else draft.wording.text


def _merged(drafts: Sequence[Draft], compared: dict[int, Draft]) -> list[Draft]:
    return [compared.get(position, draft) for position, draft in enumerate(drafts)]


def _is_compared(draft: Draft) -> bool:
    return draft.layer in _COMPARED_LAYERS and len(draft.wording.text) <= _MAX_CHARS


def _same_place(draft: Draft, memory: Memory) -> bool:
    return (
        len(memory.text) <= _MAX_CHARS
        and memory.owner_scope == draft.owner_scope
        and memory.scopes == draft.scopes
        and fact_key(memory.subject, memory.attribute) == draft.fact_key
    )
