"""Recall: hard filter, candidates, the store's check, gate, utility, budget, in this order.

Invariant: what is recorded is what was told, and the report says what became of everything that was found.
"""

from caisson.common.ids import new_id
from caisson.memory.domain.asking import check_query
from caisson.memory.domain.assembling import entry
from caisson.memory.domain.budgeting import Filled, fill
from caisson.memory.domain.finding import Confirming, Finder, Findings
from caisson.memory.domain.gating import Thresholds, passes
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.recalls import Asked, Found, Recall, Report, Told
from caisson.memory.domain.retrievals import Retrieval, Retrievals
from caisson.memory.domain.searching import Searcher
from caisson.memory.domain.utility import rank


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
        self._finder = Finder(searcher, store)
        self._retrievals = retrievals
        self._thresholds = thresholds

    async def recall(self, asked: Asked) -> Recall:
        """Return what the principal may see that is near enough and fits.

        Raises:
            EmptyQuery: the query has no content.
            Unavailable: the recall would be degraded, and the principal asked to fail then.
        """
        check_query(asked.query)
        findings = await self._finder.find(asked)
        passed = [item for item in findings.found if self._passes(item)]
        filled = await beside([item.memory.text for item in passed], lambda: self._fill(asked, passed))
        told = tuple(Told(found=item, score=score, tokens=tokens) for (score, item), tokens in filled.kept)
        retrieval = Retrieval(
            retrieval_id=new_id("ret"),
            principal=asked.filter_.principal,
            session_id=asked.session_id,
            kind=asked.kind,
            injected=tuple(item.found.memory.memory_id for item in told),
        )
        await self._retrievals.record(retrieval)
        report = self._report(findings, gated=len(findings.found) - len(passed), filled=filled)
        return Recall(retrieval_id=retrieval.retrieval_id, told=told, report=report)

    def _passes(self, found: Found) -> bool:
        return found.is_exact or passes(cosine=found.cosine, lexical=found.lexical, thresholds=self._thresholds)

    def _fill(self, asked: Asked, passed: list[Found]) -> Filled[tuple[float, Found]]:
        entries = ((pair, self._cost(asked, pair[1].memory)) for pair in rank(passed)[: asked.k])
        return fill(entries, budget=asked.token_budget)

    def _cost(self, asked: Asked, memory: Memory) -> int:
        return self._searcher.count_tokens(entry(memory) if asked.kind == "context" else memory.text)

    def _report(self, findings: Findings, *, gated: int, filled: Filled[tuple[float, Found]]) -> Report:
        found, searched = findings.found, findings.searched
        return Report(
            backend=searched.backend,
            legs=searched.candidates.legs,
            degraded=searched.degraded,
            gate=self._thresholds.dense,
            best_cosine=max((item.cosine for item in found if item.cosine is not None), default=None),
            best_lexical=max((item.lexical for item in found if item.lexical is not None), default=None),
            sparse_terms=searched.candidates.sparse_terms,
            found=len(found),
            gated=gated,
            expired_in_index=findings.expired,
            mismatched=findings.mismatched,
            dropped_for_budget=filled.dropped,
            tokens=filled.tokens,
            reason=_reason(found=len(found), gated=gated),
            cached=findings.cached,
        )


def _reason(*, found: int, gated: int) -> str | None:
    if found == 0:
        return "nothing that the caller may see was found"
    if gated == found:
        return f"filtered below the gate: {gated}"
    return None
