"""A command's output as it is printed: read from a pipe, kept in part, shown live in part.

Invariant: no more is held than the kept head and tail and one live piece; a stream that floods is read at a bounded
rate, so that its writer waits and the other boxes of the runner do not.
"""

import asyncio
import os
from typing import Final

from caisson.common.outcome import Output
from caisson.runner.domain.boxes import LiveOutput, StreamName
from caisson.runner.domain.output import HeadTail

TICK_S: Final = 0.05
LIVE_BYTES: Final = 32 << 10
"""The most that is shown live of one tick of one stream; the rest of the tick shows as a gap in the offsets."""

_READ_BYTES: Final = 64 << 10
_BURST_BYTES: Final = 16 << 20


class Capture:
    """One stream of one command. Owns the reading end of its pipe."""

    def __init__(self, fd: int, stream: StreamName, *, limit_bytes: int, live: LiveOutput) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._kept = HeadTail(limit_bytes)
        self._live = _Live(stream, live)
        self._budget = _BURST_BYTES
        self._resuming: asyncio.TimerHandle | None = None
        self._open = True
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._readable)

    def output(self) -> Output:
        """Return what is kept."""
        return self._kept.output()

    def finish(self) -> None:
        """Take what is still in the pipe and close it. Every writer has ended, or is ignored from here on."""
        while self._open and self._read():
            continue
        self._live.flush()
        self.close()

    def close(self) -> None:
        """Close the pipe. May be called again."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        if self._resuming is not None:
            self._resuming.cancel()

    def _readable(self) -> None:
        if self._read() == 0:
            self.close()
        elif self._budget <= 0:
            self._loop.remove_reader(self._fd)
            self._resuming = self._loop.call_later(TICK_S, self._resume)

    def _resume(self) -> None:
        self._budget = _BURST_BYTES
        self._loop.add_reader(self._fd, self._readable)

    def _read(self) -> int | None:
        """Read a piece and return its size: 0 at the end of the stream, None when there is nothing yet."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return None
        self._budget -= len(data)
        self._kept.add(data)
        self._live.add(data)
        return len(data)


class _Live:
    """What is shown live of a stream: one piece a tick."""

    def __init__(self, stream: StreamName, show: LiveOutput) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._show = show
        self._piece = bytearray()
        self._start = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        if not self._piece:
            self._start = self._seen
        self._seen += len(data)
        room = LIVE_BYTES - len(self._piece)
        if room > 0:
            self._piece += data[:room]
        if data and self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self.flush)

    def flush(self) -> None:
        """Show what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._piece:
            piece, self._piece = bytes(self._piece), bytearray()
            self._show(self._stream, self._start, piece)
