"""The arms of an evaluation, each over the same questions: no memory, each leg alone, both, gated, with utility.

Invariant: thresholds and utility come from the calibration half, and measures from the held-out half.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from caisson.common.errors import Unavailable
from caisson.memory.domain.calibrating import Observation, Seen, Trial, calibrate
from caisson.memory.domain.gating import Thresholds
from caisson.memory.domain.indexing import Candidate, Candidates, Embedder, Index, IndexQuery, Point
from caisson.memory.domain.measuring import Measures, Outcome, is_wrong, measure
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.question_sets import Question, QuestionSet
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.recalls import Asked, Recall
from caisson.memory.domain.rehearsing import OPEN, SetStore, filter_of, may_see
from caisson.memory.domain.searching import Searcher

K = 10
TOKEN_BUDGET = 2_000
_LESSONS = 3
_UNBOUNDED_K = 100
_UNBOUNDED_TOKENS = 100_000
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The gate that was found, and the measures of each arm, overall and by slice."""

    calibration: Trial
    arms: dict[str, dict[str, Measures]]


class NoFullText:
    """An evaluation is of the index: without it there is none."""

    async def search(self, text: str, filter_: HardFilter, *, limit: int) -> Candidates:
        """Raise Unavailable."""
        del text, filter_, limit
        raise Unavailable("the index is away, and an evaluation is of the index")


class Evaluator:
    """Plays a set through an index of its own."""

    def __init__(self, questions: QuestionSet, embedder: Embedder, index: Index, *, now: datetime) -> None:
        self._set = questions
        self._store = SetStore(questions)
        self._embedder = embedder
        self._index = index
        self._now = now

    async def load(self) -> None:
        """Embed the set's memories and put them into the index."""
        memories = list(self._store.memories.values())
        for start in range(0, len(memories), _BATCH):
            batch = memories[start : start + _BATCH]
            vectors = await self._embedder.embed([memory.text for memory in batch])
            await self._index.upsert(
                [
                    Point(
                        memory_id=memory.memory_id,
                        chunk=0,
                        version=memory.version,
                        tenant=memory.tenant,
                        scopes=frozenset(memory.scopes),
                        layer=memory.layer,
                        valid_from=memory.valid_from,
                        valid_to=memory.valid_to,
                        expires_at=memory.expires_at,
                        text=memory.text,
                        dense=vector,
                    )
                    for memory, vector in zip(batch, vectors, strict=True)
                ]
            )

    async def calibrate(self, *, target_hit_rate: float) -> Trial:
        """Find the gate on the calibration half; raises TargetOutOfReach."""
        questions, _ = self._set.halves()
        observations = [await self._observe(question) for question in questions]
        return calibrate(observations, target_hit_rate=target_hit_rate)

    async def evaluate(self, *, target_hit_rate: float) -> Evaluation:
        """Calibrate, then measure every arm on the held-out half."""
        trial = await self.calibrate(target_hit_rate=target_hit_rate)
        learning, held_out = self._set.halves()
        gated = self._recaller(trial.thresholds)
        arms: dict[str, dict[str, Measures]] = {
            "no memory": await self._measure(held_out, self._nothing),
            "dense": await self._measure(held_out, self._dense),
            "sparse": await self._measure(held_out, self._sparse),
            "fused": await self._measure(held_out, self._fused),
            "hybrid": await self._measure(held_out, lambda asked: self._recall(self._recaller(OPEN), asked)),
            "hybrid with gate": await self._measure(held_out, lambda asked: self._recall(gated, asked)),
        }
        await self._learn(learning, gated)
        arms["with utility"] = await self._measure(held_out, lambda asked: self._recall(gated, asked))
        return Evaluation(calibration=trial, arms=arms)

    async def _measure(
        self, questions: Sequence[Question], arm: Callable[[Question], Awaitable[list[str]]]
    ) -> dict[str, Measures]:
        return measure([self._outcome(question, await arm(question)) for question in questions])

    def _outcome(self, question: Question, told: Sequence[str]) -> Outcome:
        memories = [self._store.memories[memory_id] for memory_id in told]
        filter_ = filter_of(question, self._now)
        return Outcome(
            question=question,
            told=tuple(told),
            tokens=sum(self._embedder.count_tokens(memory.text) for memory in memories),
            foreign=sum(not may_see(memory, filter_) for memory in memories),
        )

    async def _nothing(self, question: Question) -> list[str]:
        del question
        return []

    async def _dense(self, question: Question) -> list[str]:
        (vector,) = await self._embedder.embed([question.text])
        return await self._leg(question, IndexQuery(dense=vector, text=None, limit=K))

    async def _sparse(self, question: Question) -> list[str]:
        return await self._leg(question, IndexQuery(dense=None, text=question.text, limit=K))

    async def _fused(self, question: Question) -> list[str]:
        (vector,) = await self._embedder.embed([question.text])
        return await self._leg(question, IndexQuery(dense=vector, text=question.text, limit=K))

    async def _leg(self, question: Question, query: IndexQuery) -> list[str]:
        candidates = await self._index.search(query, filter_of(question, self._now))
        return _ids(candidates.found)

    async def _recall(self, recaller: Recaller, question: Question) -> list[str]:
        recall = await recaller.recall(self._asked(question, k=K, token_budget=TOKEN_BUDGET))
        return _told(recall)

    async def _observe(self, question: Question) -> Observation:
        asked = self._asked(question, k=_UNBOUNDED_K, token_budget=_UNBOUNDED_TOKENS)
        recall = await self._recaller(OPEN).recall(asked)
        seen = tuple(
            Seen(memory_id=item.found.memory.memory_id, cosine=item.found.cosine, lexical=item.found.lexical)
            for item in recall.told
        )
        return Observation(question=question, seen=seen)

    async def _learn(self, questions: Sequence[Question], recaller: Recaller) -> None:
        """Reward what the calibration half was told: 1 where it answers the question, -1 where nothing of it does."""
        for _ in range(_LESSONS):
            for question in questions:
                recall = await recaller.recall(self._asked(question, k=K, token_budget=TOKEN_BUDGET))
                reward = -1.0 if is_wrong(self._outcome(question, _told(recall))) else 1.0
                await self._store.reward(recall.retrieval_id, reward, filter_of(question, self._now))

    def _recaller(self, thresholds: Thresholds) -> Recaller:
        searcher = Searcher(self._embedder, self._index, NoFullText())
        return Recaller(searcher=searcher, store=self._store, retrievals=self._store, thresholds=thresholds)

    def _asked(self, question: Question, *, k: int, token_budget: int) -> Asked:
        return Asked(query=question.text, filter_=filter_of(question, self._now), k=k, token_budget=token_budget)


def _ids(found: Sequence[Candidate]) -> list[str]:
    return [candidate.memory_id for candidate in found][:K]


def _told(recall: Recall) -> list[str]:
    return [item.found.memory.memory_id for item in recall.told]
