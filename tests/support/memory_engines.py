"""The engines behind a memory's desk: the embedded one, the server's adapter, and none, where full text serves."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from qdrant_client import AsyncQdrantClient

from caisson.memory.adapters.qdrant_server import ServerIndex
from caisson.memory.domain.indexing import Embedder
from tests.support.memory_desk import Outage, open_index

OpenEngine = Callable[[Path, Embedder], AbstractAsyncContextManager[Outage]]


@asynccontextmanager
async def open_remote(_: Path, embedder: Embedder) -> AsyncIterator[Outage]:
    """The server's adapter over the client's own imitation of a server."""
    index = await ServerIndex.open(AsyncQdrantClient(":memory:"), embedder.identity)
    yield Outage(index)
    await index.close()


@asynccontextmanager
async def open_none(folder: Path, embedder: Embedder) -> AsyncIterator[Outage]:
    """An index that is away from the first write on."""
    async with open_index(folder, embedder) as index:
        index.away = True
        yield index
        index.away = False


DESK_ENGINES: dict[str, OpenEngine] = {"edge": open_index, "remote": open_remote, "fulltext": open_none}
