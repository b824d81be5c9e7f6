"""One store, one embedded index and one plane for all cases; each case has its own tenant."""

from collections.abc import AsyncIterator

import pytest

from caisson.common.postgres import Pool, connect_pool, migrate
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from tests.support.gateway import create_database
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder, open_index
from tests.support.memory_engines import DESK_ENGINES, OpenEngine
from tests.support.memory_plane import MemoryPlane, raised_memory_plane


@pytest.fixture(scope="session")
async def memory_pool(postgres_url: str) -> AsyncIterator[Pool]:
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=24)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.fixture(scope="session")
async def word_index(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Outage]:
    async with open_index(tmp_path_factory.mktemp("words"), WordEmbedder()) as index:
        yield index


@pytest.fixture
def desk(memory_pool: Pool, word_index: Outage) -> Desk:
    """The handlers on the embedded index."""
    word_index.away = False
    return Desk(pool=memory_pool, index=word_index, embedder=WordEmbedder(), clock=Turntable())


@pytest.fixture(scope="session", params=[*DESK_ENGINES.values()], ids=[*DESK_ENGINES])
async def desk_index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Outage]:
    open_engine: OpenEngine = request.param
    async with open_engine(tmp_path_factory.mktemp("engine"), WordEmbedder()) as index:
        yield index


@pytest.fixture
def each_desk(memory_pool: Pool, desk_index: Outage) -> Desk:
    """The handlers on every engine in turn, and on full text alone."""
    return Desk(pool=memory_pool, index=desk_index, embedder=WordEmbedder(), clock=Turntable())


@pytest.fixture(scope="session")
async def plane(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryPlane]:
    """A gateway and a memory service that nothing sweeps."""
    async with raised_memory_plane(tmp_path_factory.mktemp("plane"), postgres_url) as raised:
        yield raised
