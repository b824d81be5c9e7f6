"""Recall: search, context and feedback. Invariant: what was told is recorded, and only that can be rewarded."""

from prometheus_client import Counter, Histogram

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import EmptyQuery
from caisson.common.recalls import Context, Diagnostics, Feedback, FeedbackTaken, Hit, Recalled, Search
from caisson.memory.domain.asking import searched_layers
from caisson.memory.domain.assembling import assemble, entry
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.recalls import Asked, Kind, Recall, Report, Told
from caisson.memory.domain.retrievals import Retrievals
from caisson.memory.handlers.callers import Clock, filter_of
from caisson.memory.handlers.views import view_of

SECONDS = Histogram(
    "caisson_memory_recall_seconds",
    "Time to answer a recall",
    ["kind"],
    buckets=(0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
ANSWERS = Counter("caisson_memory_recalls_total", "Recalls by what they ended in", ["result"])
CACHED = Counter("caisson_memory_recalls_cached_total", "Recalls whose candidates were those of an earlier search")
TOLD = Counter("caisson_memory_told_total", "Memories that recalls told")
UNCONFIRMED = Counter(
    "caisson_memory_unconfirmed_total", "Candidates of the index that the store did not confirm", ["cause"]
)


class RecallHandlers:
    """Answers recalls and takes rewards. Facts of recalls go with the relay's next round: nobody waits for them."""

    def __init__(self, recaller: Recaller, retrievals: Retrievals, *, clock: Clock) -> None:
        self._recaller = recaller
        self._retrievals = retrievals
        self._clock = clock

    def register(self, bus: Bus) -> None:
        """Serve recall on `bus`."""
        bus.serve(subjects.MEMORY_SEARCH, Search, self.search)
        bus.serve(subjects.MEMORY_CONTEXT, Search, self.context)
        bus.serve(subjects.MEMORY_FEEDBACK, Feedback, self.feedback)

    async def search(self, request: Search) -> Recalled:
        """Return the memories nearest to a query."""
        recall = await self._recall(request, "search")
        hits = [_hit(told) for told in recall.told]
        return Recalled(retrieval_id=recall.retrieval_id, hits=hits, diagnostics=_diagnostics(recall.report))

    async def context(self, request: Search) -> Context:
        """Return the same as text for a model."""
        recall = await self._recall(request, "context")
        memories = [told.found.memory for told in recall.told]
        return Context(
            retrieval_id=recall.retrieval_id,
            text=assemble([entry(memory) for memory in memories]),
            ids=[memory.memory_id for memory in memories],
            diagnostics=_diagnostics(recall.report),
        )

    async def feedback(self, request: Feedback) -> FeedbackTaken:
        """Let the memories of a recall learn what it was worth."""
        filter_ = filter_of(request.caller, self._clock())
        updated = await self._retrievals.reward(request.retrieval_id, request.reward, filter_)
        return FeedbackTaken(updated=updated)

    async def _recall(self, request: Search, kind: Kind) -> Recall:
        layers = searched_layers(frozenset(Layer(layer) for layer in request.layers), request.session_id)
        asked = Asked(
            query=request.query,
            filter_=filter_of(request.caller, self._clock(), as_of=request.as_of, layers=layers),
            k=request.k,
            token_budget=request.token_budget,
            session_id=request.session_id,
            may_degrade=request.on_degraded == "serve",
            kind=kind,
        )
        with SECONDS.labels(kind=kind).time():
            try:
                recall = await self._recaller.recall(asked)
            except EmptyQuery:
                ANSWERS.labels(result="refused").inc()
                raise
        _count(recall)
        return recall


def _count(recall: Recall) -> None:
    report = recall.report
    result = "degraded" if report.degraded else "told" if recall.told else "gated" if report.found else "nothing"
    ANSWERS.labels(result=result).inc()
    CACHED.inc(report.cached)
    TOLD.inc(len(recall.told))
    UNCONFIRMED.labels(cause="expired").inc(report.expired_in_index)
    UNCONFIRMED.labels(cause="mismatched").inc(report.mismatched)


def _hit(told: Told) -> Hit:
    found = told.found
    return Hit(
        memory=view_of(found.memory),
        score=told.score,
        cosine=found.cosine,
        lexical=found.lexical,
        tokens=told.tokens,
    )


def _diagnostics(report: Report) -> Diagnostics:
    return Diagnostics(
        backend=report.backend,
        legs=list(report.legs),
        degraded=list(report.degraded),
        gate=report.gate,
        best_cosine=report.best_cosine,
        best_lexical=report.best_lexical,
        sparse_terms=report.sparse_terms,
        found=report.found,
        gated=report.gated,
        expired_in_index=report.expired_in_index,
        mismatched=report.mismatched,
        dropped_for_budget=report.dropped_for_budget,
        tokens=report.tokens,
        reason=report.reason,
        cached=report.cached,
    )
