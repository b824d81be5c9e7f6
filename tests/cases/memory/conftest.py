"""One store, one embedded index and one plane for all cases; each case has its own tenant."""

from collections.abc import AsyncIterator

import pytest

from caisson.common.postgres import Pool
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.domain.gating import UNCALIBRATED
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder, open_index, open_store
from tests.support.memory_engines import DESK_ENGINES, OpenEngine
from tests.support.memory_plane import MemoryPlane, raised_memory_plane


@pytest.fixture(scope="session")
async def memory_pool(postgres_url: str) -> AsyncIterator[Pool]:
    async with open_store(postgres_url) as pool:
        yield pool


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
def each_desk(engines_pool: Pool, desk_index: Outage) -> Desk:
    """The handlers on every engine in turn, and on full text alone."""
    return Desk(pool=engines_pool, index=desk_index, embedder=WordEmbedder(), clock=Turntable())


@pytest.fixture(scope="session")
async def minilm() -> AsyncIterator[MiniLm]:
    """The default embedder, loaded once."""
    loaded = await MiniLm.load()
    yield loaded
    await loaded.close()


@pytest.fixture(scope="session")
async def engines_pool(postgres_url: str) -> AsyncIterator[Pool]:
    """A store of its own: what is never indexed on full text alone waits in it, before a relay's other work."""
    async with open_store(postgres_url) as pool:
        yield pool


@pytest.fixture(scope="session", params=[*DESK_ENGINES.values()], ids=[*DESK_ENGINES])
async def meaning_index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, minilm: MiniLm
) -> AsyncIterator[Outage]:
    open_engine: OpenEngine = request.param
    async with open_engine(tmp_path_factory.mktemp("meaning"), minilm) as index:
        yield index


@pytest.fixture
def meaning_desk(engines_pool: Pool, meaning_index: Outage, minilm: MiniLm) -> Desk:
    """The handlers over the default embedder and its gate, on every engine in turn, and on full text alone."""
    return Desk(pool=engines_pool, index=meaning_index, embedder=minilm, clock=Turntable(), thresholds=UNCALIBRATED)


@pytest.fixture(scope="session")
async def plane(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryPlane]:
    """A gateway and a memory service that nothing sweeps; a user may hold three hundred memories."""
    quota = {"MEMORY_USER_QUOTA_ROWS": "300"}
    async with raised_memory_plane(tmp_path_factory.mktemp("plane"), postgres_url, **quota) as raised:
        yield raised
