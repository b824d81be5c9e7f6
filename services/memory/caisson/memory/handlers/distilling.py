"""Distilling candidates in slices: each call works for a few seconds, saves, and says how to go on."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Final

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import InvalidInput, Unavailable
from caisson.common.memory_upkeep import Distil, Distilled
from caisson.memory.domain.admission import check_size, refuse_text
from caisson.memory.domain.distillation import (
    MODEL_STAGES,
    STAGES,
    Candidates,
    Chat,
    Stage,
    Text,
    choose,
    merge,
    sort_by_topic,
)
from caisson.memory.domain.indexing import Embedder
from caisson.memory.domain.jobs import Job, JobKind, Jobs
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.principals import Principal
from caisson.memory.handlers.callers import principal_of

_SLICE_S: Final = 3.0
_PER_MODEL_CALL = 20
_CHARS_PER_MODEL_CALL = 20_000
_PER_EMBEDDING = 64
_EMBEDDED_CHARS = 2_000
_INSTRUCTIONS = {
    Stage.SYNTHESISE: "Rewrite each note as one self-contained statement; drop notes without lasting information.",
    Stage.REFINE: "Tighten each statement; change, add and lose no fact; keep every number, name and negation.",
}


class DistillingHandlers:
    """Turns many candidates into few. The texts live in the job until it is done."""

    def __init__(
        self, jobs: Jobs, candidates: Candidates, embedder: Embedder, chat: Chat | None, *, slice_s: float = _SLICE_S
    ) -> None:
        self._jobs = jobs
        self._candidates = candidates
        self._embedder = embedder
        self._chat = chat
        self._slice_s = slice_s

    def register(self, bus: Bus) -> None:
        """Serve distillation on `bus`."""
        bus.serve(subjects.MEMORY_DISTIL, Distil, self.distil)

    async def distil(self, request: Distil) -> Distilled:
        """Work for a slice of time on a new or a resumed distillation."""
        principal = principal_of(request.caller)
        job = await self._begin(request, principal)
        deadline = monotonic() + self._slice_s
        while not job.done:
            job = await self._step(job, principal)
            if monotonic() > deadline:
                break
        if job.fence:
            await self._jobs.save(job)
        chosen = [text.text for text in await self._candidates.read(job.job_id) if text.selected] if job.done else []
        return Distilled(job_id=job.job_id, selected=chosen, stages=job.receipt["stages"], complete=job.done)

    async def _begin(self, request: Distil, principal: Principal) -> Job:
        if request.resume is not None:
            return await self._jobs.resume(JobKind.DISTIL, principal, request.resume)
        if not request.candidates:
            raise InvalidInput("candidates must not be empty", field="candidates")
        for position, text in enumerate(request.candidates):
            check_size(text, field=f"candidates.{position}")
        offered = request.candidates
        kept = await beside(offered, lambda: [text for text in offered if refuse_text(text) is None])
        report = {"stage": "admission", "in": len(request.candidates), "out": len(kept)}
        job = await self._jobs.open(
            JobKind.DISTIL, principal, {"stage": STAGES[0], "target": request.target, "at": -1}
        )
        await self._candidates.add(job.job_id, principal, kept)
        return replace(job, receipt={"stages": [report]})

    async def _step(self, job: Job, principal: Principal) -> Job:
        stage = Stage(job.state["stage"])
        texts = await self._candidates.read(job.job_id)
        if stage in MODEL_STAGES:
            return await self._reword(job, principal, stage, texts)
        match stage:
            case Stage.MERGE:
                weights = await beside([text.text for text in texts], lambda: merge(texts))
                await self._candidates.weigh(job.job_id, weights)
                await self._candidates.drop(
                    job.job_id, [text.position for text in texts if text.position not in weights]
                )
                return _next(job, {"stage": stage, "in": len(texts), "out": len(weights)})
            case Stage.CLUSTER:
                return await self._cluster(job, texts)
            case _:
                chosen = await asyncio.to_thread(choose, texts, job.state["target"])
                await self._candidates.select(job.job_id, chosen)
                dropped = [text.position for text in texts if text.position not in set(chosen)]
                await self._candidates.drop(job.job_id, dropped)
                return _next(job, {"stage": stage, "in": len(texts), "out": len(chosen)})

    async def _reword(self, job: Job, principal: Principal, stage: Stage, texts: list[Text]) -> Job:
        if self._chat is None:
            return _next(job, {"stage": stage, "skipped": "no chat endpoint is configured", "in": len(texts)})
        batch = _batch([text for text in texts if text.position > job.state["at"]])
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


def _batch(texts: Sequence[Text]) -> list[Text]:
    """Return the next texts that one call of the model may hold; one that is longer than that stays as it is."""
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
