"""Every named statement of the gateway is one that its own migrated schema understands."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from caisson.common.postgres import connect_pool, load_queries, migrate
from caisson.gateway.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from tests.support.gateway import create_database

QUERIES = load_queries(QUERIES_FILE)
NAMES = sorted(name for name in QUERIES.available_queries if not name.endswith("_cursor"))


@pytest.fixture(scope="module")
async def migrated(postgres_url: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=2)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_statement_prepares(migrated: asyncpg.Pool, name: str) -> None:
    async with migrated.acquire() as connection:
        await connection.prepare(getattr(QUERIES, name).sql)


async def test_migrating_again_changes_nothing(migrated: asyncpg.Pool) -> None:
    revision = await migrate(migrated, MIGRATIONS_DIR, schema=SCHEMA)
    assert revision == max(path.name[:4] for path in MIGRATIONS_DIR.glob("*.sql"))


HALF_SET = [
    ("status = 'running'", "running without owner, fence and lease"),
    ("status = 'running', lease_owner = 'w', lease_expires_at = now()", "running without a fence and a context"),
    ("lease_owner = 'w', lease_expires_at = now()", "leased and not running"),
    ("status = 'succeeded'", "finished at no time"),
    ("finished_at = now()", "a time of finishing, and queued"),
    ("status = 'failed', finished_at = now()", "failed without an error"),
    ("status = 'lost'", "no such status"),
    ("timeout_s = 0", "no time limit"),
]


@pytest.mark.parametrize(("change", "reason"), HALF_SET)
async def test_a_run_that_is_half_set_cannot_be_stored(migrated: asyncpg.Pool, change: str, reason: str) -> None:
    await migrated.execute(
        "INSERT INTO ledger.tenants (tenant_id, uid) VALUES ('acme', 10000) ON CONFLICT DO NOTHING"
    )
    await migrated.execute(
        "INSERT INTO ledger.runs (run_id, tenant_id, user_id, plan, timeout_s) VALUES ('run_1', 'acme', 'u', '{}', 1)"
        " ON CONFLICT DO NOTHING"
    )
    with pytest.raises(asyncpg.CheckViolationError):
        await migrated.execute(f"UPDATE ledger.runs SET {change}")
