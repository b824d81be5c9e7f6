"""One migrated database, one embedded index and one embedder for all stories; each story has its own tenant."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from caisson.common.postgres import Pool, connect_pool, migrate
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from tests.support.gateway import create_database
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder, open_index
from tests.support.memory_world import World, made_world


@pytest.fixture(scope="session")
async def memory_url(postgres_url: str) -> str:
    return await create_database(postgres_url)


@pytest.fixture(scope="session")
async def memory_pool(memory_url: str) -> AsyncIterator[Pool]:
    pool = await connect_pool(memory_url, application="tests", max_size=24)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.fixture(scope="session")
def word_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("words")


@pytest.fixture(scope="session")
async def word_index(word_folder: Path) -> AsyncIterator[Outage]:
    """An index that is copied by every `optimize` after something was deleted."""
    async with open_index(word_folder, WordEmbedder(), erase_within_s=0) as index:
        yield index


@pytest.fixture
def desk(memory_pool: Pool, word_index: Outage) -> Desk:
    word_index.away = False
    return Desk(pool=memory_pool, index=word_index, embedder=WordEmbedder(), clock=Turntable())


@pytest.fixture(scope="session")
async def filled_world(memory_pool: Pool, word_index: Outage) -> World:
    return await made_world(memory_pool, word_index)


@pytest.fixture
def world(filled_world: World, word_index: Outage) -> World:
    """The world with everything up, now."""
    word_index.away, filled_world.desk.embedder.away = False, False
    filled_world.desk.clock.ahead = timedelta()
    return filled_world
