"""The index engines that the contract holds to one behaviour. Each opens an empty index and closes it."""

import gc
import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import requests
from docker import DockerClient
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.errors import DockerException
from qdrant_client import AsyncQdrantClient
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
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
_PORT = 6333


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
    """The address of a server; skips the test, with the reason, where there is none. No image is ever pulled."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    testcontainers_config.ryuk_disabled = True
    with DockerContainer(_image()).with_exposed_ports(_PORT) as container:
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(_PORT)}"


def _image() -> str:
    tags, reason = _tags()
    if not tags:
        pytest.skip(f"no Qdrant server: QDRANT_URL is not set, and {reason}")
    return max(tags)


@cache
@cache
def _tags() -> tuple[list[str], str]:
    """Return the images that Docker has, or why there is none. Its client then leaks a socket, collected here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        told = _asked()
        gc.collect()
    return told


def _asked() -> tuple[list[str], str]:
    with closing(DockerClient.from_env(version=DEFAULT_DOCKER_API_VERSION)) as client:
        try:
            found = client.images.list(_IMAGE)
        except (DockerException, requests.ConnectionError) as error:
            return [], f"Docker does not answer: {error}"
    return [tag for image in found for tag in image.tags], f"Docker has no image {_IMAGE}"
