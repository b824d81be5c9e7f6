"""From a query to what the store confirms of it.

Invariant: what it does not confirm for this principal at this moment neither leaves nor counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from caisson.memory.domain.asking import without_sessions
from caisson.memory.domain.coverage import Coverage
from caisson.memory.domain.hashing import content_hash
from caisson.memory.domain.indexing import Candidate
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.reading import Confirmed, Epoch
from caisson.memory.domain.recalls import Asked, Found
from caisson.memory.domain.recent_searches import Question, RecentSearches
from caisson.memory.domain.searching import Searched, Searcher
from caisson.memory.domain.terms import query_terms
from caisson.memory.domain.utility import similarity

_CANDIDATES_PER_LEG = 16
_CANDIDATES_PER_HIT = 2
_WIDENING = 8


class Confirming(Protocol):
    """The store's last word about what an index found."""

    async def confirm(self, memory_ids: Sequence[str], filter_: HardFilter) -> Confirmed:
        """Return those of the ids that a recall may tell now, and the epoch that they are of."""

    async def expired_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> int:
        """Count those of the ids that are the principal's to see but have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The candidates that the store confirmed, best fused first, and how many it did not."""

    searched: Searched
    found: list[Found]
    expired: int
    mismatched: int
    of_other_sessions: int
    epoch: Epoch
    cached: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Whether the store confirmed every candidate."""
        return self.expired == self.mismatched == 0


class Finder:
    """Searches, or takes what the same question lately found; checks every candidate either way."""

    def __init__(self, searcher: Searcher, store: Confirming) -> None:
        self._searcher = searcher
        self._store = store
        self._recent = RecentSearches()

    async def find(self, asked: Asked) -> Findings:
        """Search and check; again and wider where other sessions' memories took the places of candidates.

        They are told apart after the search, because one condition more in each leg costs every recall a fifth.
        """
        limit = max(_CANDIDATES_PER_LEG, _CANDIDATES_PER_HIT * asked.k)
        findings = await self._find(asked, asked.filter_, limit)
        if findings.of_other_sessions and len(findings.found) < asked.k:
            layers = asked.filter_.layers if asked.session_id else without_sessions(asked.filter_.layers)
            return await self._find(asked, replace(asked.filter_, layers=layers), _WIDENING * limit)
        return findings

    async def _find(self, asked: Asked, filter_: HardFilter, limit: int) -> Findings:
        question = Question.of(asked.query, filter_, limit)
        kept = self._recent.get(question, filter_.now)
        if kept is not None:
            findings = await self._confirm(asked, filter_, kept.searched)
            if findings.is_confirmed and findings.epoch.changes == kept.epoch.changes:
                return replace(findings, cached=True)
            self._recent.drop(question)
        before = self._recent.last_epoch(filter_.principal)
        searched = await self._searcher.search(asked.query, filter_, limit=limit, may_degrade=asked.may_degrade)
        findings = await self._confirm(asked, filter_, searched)
        if findings.is_confirmed and findings.epoch.changes == before:
            self._recent.keep(question, searched, findings.epoch, filter_.now)
        return findings

    async def _confirm(self, asked: Asked, filter_: HardFilter, searched: Searched) -> Findings:
        candidates = searched.candidates.found
        ids = [candidate.memory_id for candidate in candidates]
        store = await self._store.confirm(ids, filter_)
        self._recent.note(filter_.principal, store.epoch)
        unseen = [memory_id for memory_id in ids if memory_id not in store.memories]
        expired = await self._store.expired_among(unseen, filter_) if unseen else 0
        confirmed = [
            (item, store.memories[item.memory_id]) for item in candidates if item.memory_id in store.memories
        ]
        fitting = [pair for pair in confirmed if _is_of_session(pair[1], asked.session_id)]
        has_terms = searched.candidates.sparse_terms > 0
        texts = [memory.text for _, memory in fitting]
        return Findings(
            searched=searched,
            found=await beside(texts, lambda: _weigh(asked, fitting, has_terms=has_terms)),
            expired=expired,
            mismatched=len(unseen) - expired,
            of_other_sessions=len(confirmed) - len(fitting),
            epoch=store.epoch,
        )


def _weigh(asked: Asked, confirmed: Sequence[tuple[Candidate, Memory]], *, has_terms: bool) -> list[Found]:
    """Score candidates. One that the dense leg did not return is at most as near as the last that it did."""
    coverage = Coverage(query_terms(asked.query))
    very_text = content_hash(asked.filter_.principal.tenant, asked.query)
    farthest = min((item.cosine for item, _ in confirmed if item.cosine is not None), default=None)
    found = []
    for candidate, memory in confirmed:
        lexical = None if candidate.lexical is None else coverage.of(memory.text)
        near = farthest if candidate.cosine is None else candidate.cosine
        found.append(
            Found(
                memory=memory,
                cosine=candidate.cosine,
                lexical=lexical,
                similarity=similarity(cosine=near, lexical=lexical, has_terms=has_terms),
                is_exact=memory.content_hash == very_text,
            )
        )
    return found


def _is_of_session(memory: Memory, session_id: str | None) -> bool:
    return memory.layer is not Layer.SESSION or memory.origin.session_id == session_id
