"""The egress bridge of one run: from the listener in its network namespace to the auth proxy.

Invariant: every connection to the proxy opens with the run's own preamble, whatever the command sends.
"""

import asyncio
import contextlib
import socket
from typing import Final, cast

import structlog

MAX_CONNECTIONS: Final = 64
_CONNECT_TIMEOUT_S: Final = 5.0
_FAREWELL_S: Final = 1.0
_RETRY_S: Final = 0.1
_UNREACHABLE_BODY: Final = (
    b'{"type":"about:blank","title":"Bad Gateway","status":502,"code":"unavailable",'
    b'"detail":"the auth proxy cannot be reached; nothing was sent to the API, the request may be repeated"}'
)
_UNREACHABLE: Final = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_UNREACHABLE_BODY), _UNREACHABLE_BODY)
)

log = structlog.get_logger(__name__)


class Bridge:
    """Serves a run's listener until it is closed. More than `MAX_CONNECTIONS` at once wait to be accepted."""

    def __init__(self, listener: socket.socket, *, host: str, port: int, preamble: bytes) -> None:
        self._listener = listener
        self._host = host
        self._port = port
        self._preamble = preamble
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._serving: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to accept. Connections made before are not lost: they wait in the listener's backlog."""
        self._serving = asyncio.create_task(self._serve(), name="bridge")

    async def close(self) -> None:
        """Break every connection and stop accepting; the listener stays open."""
        tasks = [*self._connections, *([self._serving] if self._serving else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._slots.acquire()
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                self._slots.release()
                log.warning("bridge.accept_failed", error=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            task = asyncio.create_task(self._carry(connection))
            self._connections.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._slots.release()

    async def _carry(self, connection: socket.socket) -> None:
        down, up = _pair()
        try:
            if not await self._reach_proxy(up):
                await _apologise(connection)
                return
            up.send(self._preamble)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: down, connection)
            for end in (down, up):
                end.resume_reading()
            await asyncio.wait((down.closed, up.closed))
        finally:
            for end in (down, up):
                end.abort()
            connection.close()

    async def _reach_proxy(self, up: "_End") -> bool:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: up, self._host, self._port)
        except OSError as error:  # a time-out is one
            log.warning("bridge.proxy_unreachable", error=str(error))
            return False
        return True


def _pair() -> "tuple[_End, _End]":
    one, other = _End(), _End()
    one.peer, other.peer = other, one
    return one, other


class _End(asyncio.Protocol):
    """One end of a carried connection: what arrives here leaves at the peer, no faster than the peer takes it."""

    peer: "_End"

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._finished = False

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def send_end(self) -> None:
        """Say that no more comes: close once the other direction has ended too."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._finished:
            self._transport.close()
        else:
            self._transport.write_eof()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.pause_reading()  # until both ends are there

    def data_received(self, data: bytes) -> None:
        self.peer.send(data)

    def eof_received(self) -> bool:
        self._finished = True
        self.peer.send_end()
        return not self.peer._finished

    def pause_writing(self) -> None:
        self.peer.pause_reading()

    def resume_writing(self) -> None:
        self.peer.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        if exc is None:
            self.peer.close()
        else:
            self.peer.abort()


async def _apologise(connection: socket.socket) -> None:
    """Answer for the proxy, and read what was asked: a close with unread bytes would take the answer back."""
    loop = asyncio.get_running_loop()
    try:
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_FAREWELL_S):
                await loop.sock_sendall(connection, _UNREACHABLE)
                connection.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(connection, 65536):
                    pass
    finally:
        connection.close()
