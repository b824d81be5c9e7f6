"""Recall: hard filter, candidates, the store's check, gate, utility, budget, in this order.

Invariant: what the store does not confirm for this principal at this moment neither leaves nor counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from caisson.common.ids import new_id
from caisson.memory.domain.asking import check_query
from caisson.memory.domain.assembling import entry
from caisson.memory.domain.budgeting import Filled, fill
from caisson.memory.domain.coverage import Coverage
from caisson.memory.domain.gating import Thresholds, passes
from caisson.memory.domain.indexing import Candidate
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.recalls import Asked, Found, Recall, Report, Told
from caisson.memory.domain.retrievals import Retrieval, Retrievals
from caisson.memory.domain.searching import Searched, Searcher
from caisson.memory.domain.terms import query_terms
from caisson.memory.domain.utility import rank, similarity

_CANDIDATES_PER_LEG = 16
_CANDIDATES_PER_HIT = 2


class Confirming(Protocol):
    """The store's last word about what an index found."""

    async def visible_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> dict[str, Memory]:
        """Return those of the ids that a recall may tell now."""

    async def expired_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> int:
        """Count those of the ids that are the principal's to see but have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """The candidates that the store confirmed, best fused first, and how many it did not."""

    found: list[Found]
    expired: int
    mismatched: int


class Recaller:
    """Answers recalls."""

    def __init__(
        self,
        *,
        searcher: Searcher,
        store: Confirming,
        retrievals: Retrievals,
        thresholds: Thresholds,
    ) -> None:
        self._searcher = searcher
        self._store = store
        self._retrievals = retrievals
        self._thresholds = thresholds

    async def recall(self, asked: Asked) -> Recall:
        """Return what the principal may see that is near enough and fits.

        Raises:
            EmptyQuery: the query has no content.
            Unavailable: the recall would be degraded, and the principal asked to fail then.
        """
        check_query(asked.query)
        limit = max(_CANDIDATES_PER_LEG, _CANDIDATES_PER_HIT * asked.k)
        searched = await self._searcher.search(asked.query, asked.filter_, limit=limit, may_degrade=asked.may_degrade)
        checked = await self._check(asked, searched)
        passed = [item for item in checked.found if self._passes(item)]
        filled = self._fill(asked, passed)
        told = tuple(Told(found=item, score=score, tokens=tokens) for (score, item), tokens in filled.kept)
        retrieval = Retrieval(
            retrieval_id=new_id("ret"),
            principal=asked.filter_.principal,
            session_id=asked.session_id,
            kind=asked.kind,
            injected=tuple(item.found.memory.memory_id for item in told),
        )
        await self._retrievals.record(retrieval)
        report = self._report(searched, checked, gated=len(checked.found) - len(passed), filled=filled)
        return Recall(retrieval_id=retrieval.retrieval_id, told=told, report=report)

    async def _check(self, asked: Asked, searched: Searched) -> _Checked:
        """Ask the store about every candidate; what it does not confirm is not there."""
        candidates = searched.candidates.found
        ids = [candidate.memory_id for candidate in candidates]
        visible = await self._store.visible_among(ids, asked.filter_) if ids else {}
        unseen = [memory_id for memory_id in ids if memory_id not in visible]
        expired = await self._store.expired_among(unseen, asked.filter_) if unseen else 0
        confirmed = [
            (candidate, visible[candidate.memory_id]) for candidate in candidates if candidate.memory_id in visible
        ]
        found = _weigh(asked.query, [pair for pair in confirmed if _is_of_session(pair[1], asked.session_id)])
        return _Checked(found=found, expired=expired, mismatched=len(unseen) - expired)

    def _passes(self, found: Found) -> bool:
        return passes(cosine=found.cosine, lexical=found.lexical, thresholds=self._thresholds)

    def _fill(self, asked: Asked, passed: list[Found]) -> Filled[tuple[float, Found]]:
        entries = ((pair, self._cost(asked, pair[1].memory)) for pair in rank(passed)[: asked.k])
        return fill(entries, budget=asked.token_budget)

    def _cost(self, asked: Asked, memory: Memory) -> int:
        return self._searcher.count_tokens(entry(memory) if asked.kind == "context" else memory.text)

    def _report(
        self, searched: Searched, checked: _Checked, *, gated: int, filled: Filled[tuple[float, Found]]
    ) -> Report:
        found, candidates = checked.found, searched.candidates
        return Report(
            backend=searched.backend,
            legs=candidates.legs,
            degraded=searched.degraded,
            gate=self._thresholds.dense,
            best_cosine=max((item.cosine for item in found if item.cosine is not None), default=None),
            best_lexical=max((item.lexical for item in found if item.lexical is not None), default=None),
            sparse_terms=candidates.sparse_terms,
            found=len(found),
            gated=gated,
            expired_in_index=checked.expired,
            mismatched=checked.mismatched,
            dropped_for_budget=filled.dropped,
            tokens=filled.tokens,
            reason=_reason(found=len(found), gated=gated),
        )


def _weigh(query: str, confirmed: Sequence[tuple[Candidate, Memory]]) -> list[Found]:
    """Score candidates. One that the dense leg did not return is at most as near as the last that it did."""
    coverage = Coverage(query_terms(query))
    cosines = [candidate.cosine for candidate, _ in confirmed if candidate.cosine is not None]
    farthest = min(cosines, default=None)
    found = []
    for candidate, memory in confirmed:
        lexical = None if candidate.lexical is None else coverage.of(memory.text)
        near = farthest if candidate.cosine is None else candidate.cosine
        found.append(
            Found(
                memory=memory,
                cosine=candidate.cosine,
                lexical=lexical,
                similarity=similarity(cosine=near, lexical=lexical),
            )
        )
    return found


def _is_of_session(memory: Memory, session_id: str | None) -> bool:
    return memory.layer is not Layer.SESSION or memory.origin.session_id == session_id


def _reason(*, found: int, gated: int) -> str | None:
    if found == 0:
        return "nothing that the caller may see was found"
    if gated == found:
        return f"filtered below the gate: {gated}"
    return None
