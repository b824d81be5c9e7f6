"""One reader's stream of a run: durable events from the ledger and live output, merged into SSE frames.

Invariant: only durable events carry an id, so `Last-Event-ID` can neither skip nor repeat one. Live output of a step
comes after the step's start and before its end.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator

from pydantic import ValidationError

from caisson.common import metrics
from caisson.common.errors import InvalidInput, NotFound
from caisson.common.ids import RunId
from caisson.common.leases import OutputChunk
from caisson.common.subjects import parse
from caisson.gateway.api.models import rfc3339
from caisson.gateway.domain.runs import MAX_EVENTS, EventRecord, News, Runs

COMMENT_EVERY_S = 15.0
_POLL_S = 1.0
_BUFFERED_CHUNKS = 512


class EventStream:
    """One reader of one run."""

    def __init__(
        self,
        runs: Runs,
        news: News,
        stopping: asyncio.Event,
        run_id: RunId,
        after: int,
        *,
        comment_every_s: float = COMMENT_EVERY_S,
    ) -> None:
        self._runs = runs
        self._news = news
        self._stopping = stopping
        self._run_id = run_id
        self._after = after
        self._comment_every_s = comment_every_s
        self._live: deque[OutputChunk] = deque(maxlen=_BUFFERED_CHUNKS)
        self._finished_steps: set[str] = set()
        self._ended = False
        self._behind = False

    def receive(self, subject: str, body: bytes) -> None:
        """Take a chunk of live output; a slow reader loses the oldest ones, and sees it by their offsets."""
        try:
            chunk = OutputChunk.model_validate_json(body)
            addressed = chunk.step_id == parse(subject).ids.step
        except (ValidationError, InvalidInput):
            addressed = False
        if not addressed:
            metrics.MISADDRESSED.labels(service="gateway").inc()
            return
        self._live.append(chunk)
        self._news.wake()

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield SSE frames until the run has finished, was deleted, or the gateway stops."""
        loop = asyncio.get_running_loop()
        last_sent = loop.time()
        while not self._stopping.is_set():
            try:
                frames = await self._take()
            except NotFound:
                return
            if frames:
                yield b"".join(frames)
                last_sent = loop.time()
            if self._ended:
                return
            if loop.time() - last_sent >= self._comment_every_s:
                yield b": still here\n\n"
                last_sent = loop.time()
            if not self._behind:
                await self._news.next(timeout_s=_POLL_S)

    async def _take(self) -> list[bytes]:
        """Return what is new.

        Output that came before the ledger is read is told now: the start of its step is among the events. Of what
        comes meanwhile, that of a step which has ended is told, and the rest is kept for the next time.
        """
        told = self._drain()
        events = await self._runs.events(self._run_id, after=self._after)
        kept = self._drain()
        self._behind = len(events) == MAX_EVENTS
        frames: list[bytes] = []
        for event in events:
            if event.type == "step.finished":
                step_id = event.data["step_id"]
                frames += [_live(chunk) for chunk in told + kept if chunk.step_id == step_id]
                self._finished_steps.add(step_id)
            frames.append(_durable(event, self._run_id))
            self._after = event.seq
            self._ended = self._ended or event.type == "run.finished"
        told, kept = self._unfinished(told), self._unfinished(kept)
        if self._behind:
            told, kept = [], told + kept
        self._live.extendleft(reversed(kept))
        return frames + [_live(chunk) for chunk in told]

    def _drain(self) -> list[OutputChunk]:
        chunks = list(self._live)
        self._live.clear()
        return chunks

    def _unfinished(self, chunks: list[OutputChunk]) -> list[OutputChunk]:
        return [chunk for chunk in chunks if chunk.step_id not in self._finished_steps]


def _live(chunk: OutputChunk) -> bytes:
    return _frame("step.output", chunk.model_dump(mode="json"))


def _durable(event: EventRecord, run_id: RunId) -> bytes:
    data = {"run_id": run_id, "occurred_at": rfc3339(event.occurred_at), **event.data}
    return f"id: {event.seq}\n".encode() + _frame(event.type, data)


def _frame(name: str, data: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
