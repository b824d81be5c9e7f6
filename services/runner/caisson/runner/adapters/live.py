"""Live output over the bus: at most once, never stored.

Invariant: a command that prints faster than the bus takes loses live output, never time or memory.
"""

import asyncio

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.ids import Ids
from caisson.common.leases import OutputChunk
from caisson.common.subjects import Subject
from caisson.runner import metrics
from caisson.runner.domain.boxes import LiveOutput, StreamName
from caisson.runner.domain.live_text import LiveText, Piece

_MAX_WAITING = 128


class BusLive:
    """The domain's `Live`: one bounded queue for all steps, emptied by `run`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: asyncio.Queue[tuple[Subject, OutputChunk]] = asyncio.Queue(_MAX_WAITING)

    def open(self, ids: Ids) -> "BusLiveStep":
        """Begin with a step."""
        return BusLiveStep(self, ids)

    def put(self, subject: Subject, chunk: OutputChunk) -> None:
        """Queue a piece, or drop it."""
        try:
            self._waiting.put_nowait((subject, chunk))
        except asyncio.QueueFull:
            metrics.LIVE_DROPPED.inc()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            subject, chunk = await self._waiting.get()
            await self._bus.publish_live(subject, chunk.model_dump_json().encode())


class BusLiveStep:
    """The live output of one step."""

    def __init__(self, live: BusLive, ids: Ids) -> None:
        self._live = live
        self._subject = subjects.step_output(ids)
        self._step_id = str(ids.step)
        self._texts: dict[StreamName, LiveText] = {"stdout": LiveText(), "stderr": LiveText()}

    @property
    def receive(self) -> LiveOutput:
        """Where the box puts what a command prints."""
        return self._receive

    def close(self) -> None:
        """Send what was still incomplete."""
        for stream, text in self._texts.items():
            self._send(stream, text.close())

    def _receive(self, stream: StreamName, offset: int, data: bytes) -> None:
        self._send(stream, self._texts[stream].feed(offset, data))

    def _send(self, stream: StreamName, piece: Piece | None) -> None:
        if piece is not None:
            chunk = OutputChunk(step_id=self._step_id, stream=stream, offset=piece.offset, text=piece.text)
            self._live.put(self._subject, chunk)
