"""When bytes leave.

Invariant: what is written in one turn of the event loop leaves at its end, in order, and before its connection is
closed. Written at once, each answer would wake a sleeping peer for itself; under load a turn has a dozen.
"""

import asyncio

_MANY = 16
_MUCH_BYTES = 16 << 10


class Writes:
    """The writes of one turn of the loop, by connection."""

    __slots__ = ("_is_scheduled", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[asyncio.Transport, list[bytes]] = {}
        self._is_scheduled = False

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send bytes at the end of this turn; much of them at once, so that the transport can say when it is full."""
        waiting = self._waiting.get(transport)
        if waiting is not None:
            waiting.append(data)
            if len(waiting) > _MANY or len(data) > _MUCH_BYTES:
                self.finish(transport)
            return
        if len(data) > _MUCH_BYTES:
            transport.write(data)
            return
        self._waiting[transport] = [data]
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def finish(self, transport: asyncio.Transport) -> None:
        """Send now what waits for a connection."""
        waiting = self._waiting.pop(transport, None)
        if waiting is not None and not transport.is_closing():
            transport.write(b"".join(waiting))

    def forget(self, transport: asyncio.Transport) -> None:
        """Drop what waits for a connection that has gone."""
        self._waiting.pop(transport, None)

    def _flush(self) -> None:
        self._is_scheduled = False
        turn, self._waiting = self._waiting, {}
        for transport, waiting in turn.items():
            if not transport.is_closing():
                transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))
