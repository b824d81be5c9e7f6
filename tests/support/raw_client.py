"""A client that sends exactly the bytes that a test writes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it stood on the wire."""

    head: bytes
    raw_body: bytes
    trailers: bytes = b""

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def body(self) -> bytes:
        """The body without its chunk framing."""
        if b"transfer-encoding: chunked" not in self.head.lower():
            return self.raw_body
        body, rest = b"", self.raw_body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
        return body

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.problem["code"])

    @property
    def problem(self) -> dict[str, Any]:
        assert b"application/problem+json" in self.head, self
        problem: dict[str, Any] = json.loads(self.body)
        return problem

    def header(self, name: str) -> str | None:
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(": ")
            if key.lower() == name.lower():
                return value
        return None


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, *, to_head: bool = False) -> Reply:
        """Read one answer by its framing."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        lowered = head.lower()
        status = int(head.split(b" ", 2)[1])
        if to_head or status in {204, 304} or status < 200:
            return Reply(head[:-2], b"")
        if b"\r\ntransfer-encoding: chunked" in lowered:
            return await self._chunked(head)
        if b"\r\ncontent-length: " in lowered:
            length = int(lowered.split(b"\r\ncontent-length: ")[1].partition(b"\r\n")[0])
            return Reply(head[:-2], await self.reader.readexactly(length))
        return Reply(head[:-2], await self.reader.read())

    async def _chunked(self, head: bytes) -> Reply:
        raw = b""
        while True:
            size = await self.reader.readuntil(b"\r\n")
            if int(size, 16) == 0:
                trailers = b""
                while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
                    trailers += line
                return Reply(head[:-2], raw, trailers)
            raw += size + await self.reader.readexactly(int(size, 16) + 2)

    async def ended(self) -> bool:
        """Whether the other side has closed, with nothing more to read."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Wire]:
    """Connect to `host:port`."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
