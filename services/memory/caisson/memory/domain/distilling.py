"""Distilling step by step: one call of a model, one batch of vectors, or one pure stage.

The texts live with the job until it is done; between two steps the job says all that is needed to go on.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from caisson.common.errors import Unavailable
from caisson.memory.domain.admission import refuse_text
from caisson.memory.domain.distillation import STAGES, Candidates, Chat, Stage, Text, choose, merge, sort_by_topic
from caisson.memory.domain.indexing import Embedder
from caisson.memory.domain.jobs import Job
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.principals import Principal

_PER_MODEL_CALL = 20
_CHARS_PER_MODEL_CALL = 20_000
_PER_EMBEDDING = 64
_EMBEDDED_CHARS = 2_000
_INSTRUCTIONS = {
    Stage.SYNTHESISE: "Rewrite each note as one self-contained statement; drop notes without lasting information.",
    Stage.REFINE: "Tighten each statement; change, add and lose no fact; keep every number, name and negation.",
}


def first_state(target: int) -> dict[str, Any]:
    """Return the state of a job that distils to at most `target` texts and has not begun."""
    return {"stage": STAGES[0], "target": target, "at": -1}


class Distiller:
    """Turns many candidates into few. A stage whose model is away is skipped, and told as skipped."""

    def __init__(self, candidates: Candidates, embedder: Embedder, chat: Chat | None) -> None:
        self._candidates = candidates
        self._embedder = embedder
        self._chat = chat

    async def begin(self, job: Job, principal: Principal, texts: Sequence[str], *, offered: int) -> Job:
        """Keep the texts that were admitted of those that were offered."""
        await self._candidates.add(job.job_id, principal, texts)
        return replace(job, receipt={"stages": [{"stage": "admission", "in": offered, "out": len(texts)}]})

    async def selected(self, job: Job) -> list[str]:
        """Return what a job that is done selected."""
        return [text.text for text in await self._candidates.read(job.job_id) if text.selected]

    async def step(self, job: Job, principal: Principal) -> Job:
        """Do one step of the job's stage and return how far it is."""
        stage = Stage(job.state["stage"])
        texts = await self._candidates.read(job.job_id)
        match stage:
            case Stage.SYNTHESISE | Stage.REFINE:
                return await self._reword(job, principal, stage, texts)
            case Stage.MERGE:
                return await self._merge(job, texts)
            case Stage.CLUSTER:
                return await self._cluster(job, texts)
            case Stage.SELECT:
                return await self._select(job, texts)
        assert_never(stage)

    async def _merge(self, job: Job, texts: Sequence[Text]) -> Job:
        weights = await beside([text.text for text in texts], lambda: merge(texts))
        await self._candidates.weigh(job.job_id, weights)
        await self._candidates.drop(job.job_id, [text.position for text in texts if text.position not in weights])
        return _next(job, {"stage": Stage.MERGE, "in": len(texts), "out": len(weights)})

    async def _select(self, job: Job, texts: Sequence[Text]) -> Job:
        chosen = await asyncio.to_thread(choose, texts, job.state["target"])
        await self._candidates.select(job.job_id, chosen)
        dropped = {text.position for text in texts} - set(chosen)
        await self._candidates.drop(job.job_id, sorted(dropped))
        return _next(job, {"stage": Stage.SELECT, "in": len(texts), "out": len(chosen)})

    async def _reword(self, job: Job, principal: Principal, stage: Stage, texts: list[Text]) -> Job:
        if self._chat is None:
            return _next(job, {"stage": stage, "skipped": "no chat endpoint is configured", "in": len(texts)})
        batch = next_batch([text for text in texts if text.position > job.state["at"]])
        if not batch:
            return _next(job, {"stage": stage, "out": len(texts)})
        try:
            answers = await self._chat.reword(_INSTRUCTIONS[stage], [text.text for text in batch])
        except Unavailable as error:
            return _next(job, {"stage": stage, "skipped": error.detail, "in": len(texts)})
        kept = {text.position: answer for text, answer in zip(batch, answers, strict=True) if _is_usable(answer)}
        await self._candidates.reword(job.job_id, principal, {at: text for at, text in kept.items() if text})
        if stage is Stage.SYNTHESISE:
            dropped = [text.position for text, answer in zip(batch, answers, strict=True) if answer is None]
            await self._candidates.drop(job.job_id, dropped)
        return replace(job, state=job.state | {"at": batch[-1].position})

    async def _cluster(self, job: Job, texts: Sequence[Text]) -> Job:
        batch = [text for text in texts if text.vector is None and text.position > job.state["at"]][:_PER_EMBEDDING]
        if batch:
            vectors = await self._embedder.embed(await asyncio.to_thread(self._firsts, batch))
            await self._candidates.embed(
                job.job_id, {text.position: vector for text, vector in zip(batch, vectors, strict=True)}
            )
            return replace(job, state=job.state | {"at": batch[-1].position})
        topics = await asyncio.to_thread(sort_by_topic, texts)
        await self._candidates.sort(job.job_id, topics)
        return _next(job, {"stage": Stage.CLUSTER, "in": len(texts), "topics": len(set(topics.values()))})

    def _firsts(self, batch: Sequence[Text]) -> list[str]:
        return [(self._embedder.chunks(text.text[:_EMBEDDED_CHARS]) or [text.text])[0] for text in batch]


def _next(job: Job, report: dict[str, Any]) -> Job:
    """Go on to the next stage, or be done after the last."""
    place = STAGES.index(Stage(job.state["stage"])) + 1
    receipt = {"stages": [*job.receipt["stages"], report]}
    if place == len(STAGES):
        return replace(job, receipt=receipt, done=True)
    return replace(job, receipt=receipt, state=job.state | {"stage": STAGES[place], "at": -1})


def next_batch(texts: Sequence[Text]) -> list[Text]:
    """Return the first texts that one call of the model may hold; one that is longer than that stays as it is."""
    batch: list[Text] = []
    size = 0
    for text in texts:
        if len(text.text) > _CHARS_PER_MODEL_CALL:
            continue
        size += len(text.text)
        if len(batch) == _PER_MODEL_CALL or size > _CHARS_PER_MODEL_CALL:
            break
        batch.append(text)
    return batch


def _is_usable(answer: str | None) -> bool:
    return answer is not None and refuse_text(answer) is None
