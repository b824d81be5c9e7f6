"""A few kills of a whole service under writes; `python -m bench memory_kills` is the same with a hundred."""

import random
from pathlib import Path

import pytest

from caisson.common.postgres import connect_pool, migrate
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from caisson.stack.nats import EmbeddedNats
from tests.support.gateway import create_database
from tests.support.memory_kills import SETTINGS, Moment, Ordeal
from tests.support.memory_process import Ground, asking
from tests.support.memory_writers import Writer

SEED = 20_260_501
MOMENTS = (Moment.WRITES, Moment.START, Moment.COPY, Moment.WRITES, Moment.WRITES)


@pytest.mark.timeout(300)
async def test_a_service_killed_under_writes_loses_nothing_acknowledged_and_brings_nothing_deleted_back(
    postgres_url: str, nats: EmbeddedNats, tmp_path: Path
) -> None:
    ground = Ground(folder=tmp_path, database_url=await create_database(postgres_url), nats=nats)
    pool = await connect_pool(ground.database_url, application="tests")
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    rng = random.Random(SEED)
    async with asking(nats) as gateway:
        writers = [
            Writer(ask=gateway.call, tenant=tenant, name=name, rng=random.Random(rng.random()))
            for tenant in ("kills", "kills0")
            for name in ("ana", "ben")
        ]
        ordeal = Ordeal(
            service=ground.service(**SETTINGS),
            index=tmp_path / "index",
            pool=pool,
            ask=gateway.call,
            writers=writers,
            rng=rng,
            writing_s=1.5,
        )
        try:
            for moment in MOMENTS:
                await ordeal.kill(moment)
            await ordeal.examine()
        finally:
            await ordeal.service.stop()
    await pool.close()
    acknowledged = sum(writer.acknowledged for writer in writers)
    assert ordeal.tally.lapses == [], f"seed {SEED}, {acknowledged} requests were acknowledged"
    assert acknowledged > 0
