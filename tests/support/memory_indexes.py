"""The index engines that the contract holds to one behaviour. Each opens an empty index and closes it."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from caisson.memory.adapters.qdrant_edge import EdgeIndex
from caisson.memory.adapters.qdrant_server import ServerIndex
from caisson.memory.adapters.qdrant_server_collections import connect
from caisson.memory.domain.indexing import Index
from tests.support.eventually import eventually
from tests.support.memory_points import IDENTITY
from tests.support.memory_rows import rows_index

LOCAL_MODE_WARNINGS = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect", "ignore:Local mode performs exact"
)

_IMAGE = "qdrant/qdrant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How to open an index, given a folder and a PostgreSQL, and what sets it apart.

    `dense`: it searches by likeness. `lexical`: its own name for the leg of terms. `chunked`: it counts chunks, not
    memories. `brisk`: thousands of writes take a moment.
    """

    open: Callable[[Path, str], AbstractAsyncContextManager[Index]]
    dense: bool = True
    lexical: str = "sparse"
    chunked: bool = True
    brisk: bool = True


@asynccontextmanager
async def edge(folder: Path, _: str) -> AsyncIterator[Index]:
    """The engine in this process."""
    index = await EdgeIndex.open(folder / "edge", IDENTITY)
    yield index
    await index.close()


@asynccontextmanager
async def local_mode(_: Path, __: str) -> AsyncIterator[Index]:
    """The server's adapter over the client's own imitation of a server."""
    index = await ServerIndex.open(AsyncQdrantClient(":memory:"), IDENTITY)
    yield index
    await index.close()


@asynccontextmanager
async def server(_: Path, __: str) -> AsyncIterator[Index]:
    """The server's adapter over a server: the one at QDRANT_URL, or one in a container."""
    with qdrant_url() as url:
        client = connect(url, api_key=os.environ.get("QDRANT_API_KEY"))
        await eventually(client.get_collections, within_s=30)
        index = await ServerIndex.open(client, IDENTITY, rebuild=True)
        yield index
        await index.close()


@asynccontextmanager
async def rows(_: Path, postgres_url: str) -> AsyncIterator[Index]:
    """What serves when the index is away: full text in the store."""
    async with rows_index(postgres_url) as index:
        yield index


ENGINES = {
    "edge": Engine(open=edge),
    "local-mode": Engine(open=local_mode, brisk=False),
    "server": Engine(open=server),
    "fulltext": Engine(open=rows, dense=False, lexical="fulltext", chunked=False, brisk=False),
}


@contextmanager
def qdrant_url() -> Iterator[str]:
    """The address of a server; skips the test, with the reason, where there is none."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    if shutil.which("docker") is None or _docker("image", "inspect", _IMAGE).returncode:
        pytest.skip(f"no Qdrant server: QDRANT_URL is not set, and there is no Docker with the image {_IMAGE}")
    container = _docker("run", "--detach", "--rm", "--publish", "127.0.0.1::6333", _IMAGE).stdout.strip()
    try:
        port = _docker("port", container, "6333").stdout.splitlines()[0].rpartition(":")[2]
        yield f"http://127.0.0.1:{port}"
    finally:
        _docker("kill", container)


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=False)
