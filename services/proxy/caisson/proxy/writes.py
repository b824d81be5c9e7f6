"""When bytes leave.

Invariant: what is written in one turn of the event loop leaves at its end, in order, and before its connection is
closed. Written at once, each answer would wake a sleeping peer for itself; under load a turn has a dozen.
"""

import asyncio

_MANY = 256
_MUCH_BYTES = 16 << 10


class Writes:
    """The writes of one turn of the loop."""

    __slots__ = ("_is_scheduled", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []
        self._is_scheduled = False

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send bytes at the end of this turn; much of them at once, so that the transport can say when it is full."""
        self._waiting.append((transport, data))
        if len(data) > _MUCH_BYTES or len(self._waiting) > _MANY:
            self._send_all()
        elif not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def finish(self, transport: asyncio.Transport) -> None:
        """Send now what waits for a connection."""
        if any(waiting is transport for waiting, _ in self._waiting):
            self._send_all()

    def _flush(self) -> None:
        self._is_scheduled = False
        self._send_all()

    def _send_all(self) -> None:
        turn, self._waiting = self._waiting, []
        last: asyncio.Transport | None = None
        pieces: list[bytes] = []
        for transport, data in turn:
            if transport is last:
                pieces.append(data)
                continue
            if last is not None:
                _send(last, pieces)
            last, pieces = transport, [data]
        if last is not None:
            _send(last, pieces)


def _send(transport: asyncio.Transport, pieces: list[bytes]) -> None:
    if not transport.is_closing():
        transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
