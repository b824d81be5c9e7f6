"""An embeddings endpoint as OpenAI's API has it: real HTTP, vectors that the text decides, faults on request."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.memory_points import vector_of


@dataclass(slots=True)
class EmbeddingsServer:
    """What was asked, and what to answer next instead of embeddings: (status, headers, body), oldest first."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    faults: list[tuple[int, str, str]] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length:")[2].split()[0])
        asked = json.loads(await reader.readexactly(length))
        self.requests.append(asked)
        self.headers.append(head)
        status, headers, body = self.faults.pop(0) if self.faults else (200, "", _embeddings(asked["input"]))
        writer.write(f"HTTP/1.1 {status} -\r\n{headers}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def embeddings_server() -> AsyncIterator[EmbeddingsServer]:
    """A server on a free port."""
    played = EmbeddingsServer()
    server = await asyncio.start_server(played.answer, "127.0.0.1", 0)
    played.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield played


def _embeddings(texts: list[str]) -> str:
    """Last text first, and not of length 1: the order and the length are the reader's to mend."""
    rows = [{"index": at, "embedding": [3 * x for x in vector_of(text)]} for at, text in enumerate(texts)]
    return json.dumps({"object": "list", "data": rows[::-1]})
