"""An upstream that keeps the exact bytes that it was sent, and answers as a test says."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Received:
    """One request as it stood on the wire, and its connection. `raw` grows as the body is read."""

    connection: int
    head: bytes
    reader: asyncio.StreamReader = field(repr=False)
    writer: asyncio.StreamWriter = field(repr=False)
    body: bytes = b""

    @property
    def line(self) -> str:
        return self.head.partition(b"\r\n")[0].decode("latin-1")

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    def values(self, name: str) -> list[str]:
        """Every value of a header, in the exact spelling of the name."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return [line.split(": ", 1)[1] for line in lines if line.startswith(f"{name}: ")]

    def names(self) -> list[str]:
        return [line.partition(":")[0] for line in self.head.decode("latin-1").split("\r\n")[1:] if line]

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read_body(self) -> None:
        """Read the body as it is framed, chunk framing included."""
        head = self.head.lower()
        if b"transfer-encoding: chunked" in head:
            while not self.body.endswith(b"0\r\n\r\n"):
                self.body += await self.reader.readuntil(b"\r\n")
        elif b"content-length: " in head:
            length = int(head.split(b"content-length: ")[1].partition(b"\r\n")[0])
            self.body = await self.reader.readexactly(length)


Answer = Callable[[Received], Awaitable[None]]


def fixed(raw: bytes) -> Answer:
    """Read the body, then send these bytes."""

    async def answer(received: Received) -> None:
        await received.read_body()
        await received.send(raw)

    return answer


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class RawUpstream:
    """A server on a free port. `answer` may be replaced at any time."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answer: Answer = fixed(OK)
        self.received: list[Received] = []
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", port or self.port, ssl=self._tls, limit=1 << 20
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse new connections and cut those that are open."""
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def reset(self) -> None:
        self.answer = fixed(OK)
        self.received.clear()

    @property
    def last(self) -> Received:
        return self.received[-1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                received = Received(number, head[:-2], reader, writer)
                self.received.append(received)
                await self.answer(received)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
