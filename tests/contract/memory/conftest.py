"""The index under contract: one of each engine for a file of tests, which keep apart by their tenants."""

from collections.abc import AsyncIterator

import pytest

from caisson.memory.domain.indexing import Index
from tests.support.memory_desk import Desk, Turntable, WordEmbedder, open_index, open_store
from tests.support.memory_indexes import ENGINES, Engine


@pytest.fixture(scope="module", params=[*ENGINES.values()], ids=[*ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine."""
    found: Engine = request.param
    return found


@pytest.fixture(scope="module")
async def index(engine: Engine, tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> AsyncIterator[Index]:
    """An open index of the engine."""
    async with engine.open(tmp_path_factory.mktemp("index"), postgres_url) as opened:
        yield opened


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> AsyncIterator[Desk]:
    """The handlers of a tenant, on the embedded index."""
    embedder = WordEmbedder()
    async with (
        open_store(postgres_url) as pool,
        open_index(tmp_path_factory.mktemp("words"), embedder) as index,
    ):
        yield Desk(pool=pool, index=index, embedder=embedder, clock=Turntable())
