"""Making the first platform key on the gateway's host, before any API key exists."""

from caisson.common.postgres import connect_pool, load_queries, migrate
from caisson.gateway.adapters.postgres.tenancy import PostgresKeys
from caisson.gateway.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.gateway.domain.principals import KeyKind, mint
from caisson.gateway.settings import GatewaySettings


async def create_platform_key(settings: GatewaySettings, name: str) -> str:
    """Store a new platform key and return its text, which exists nowhere else."""
    pool = await connect_pool(settings.database_url.get_secret_value(), application="caisson-keys", max_size=2)
    try:
        await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
        minted = mint()
        await PostgresKeys(pool, load_queries(QUERIES_FILE)).create(
            minted, kind=KeyKind.PLATFORM, name=name, tenant=None
        )
        return minted.token
    finally:
        await pool.close()
