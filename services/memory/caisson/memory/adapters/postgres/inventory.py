"""What the index should hold, by the store."""

from collections.abc import Sequence
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts


class PostgresInventory:
    """The domain's `Inventory`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that ever remembered anything."""
        async with self._pool.acquire() as connection:
            return [
                TenantId(row["tenant_id"]) for row in await fetch_all(self._sql.tenants_with_memories(connection))
            ]

    async def indexable(self, tenant: TenantId) -> dict[str, int]:
        """Return the version of each memory that the index should hold, but for what waits in the outbox."""
        async with self._pool.acquire() as connection:
            rows = await fetch_all(self._sql.indexable(connection, tenant=tenant))
        return {row["memory_id"]: row["version"] for row in rows}

    async def waiting(self, tenant: TenantId, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the memories that wait in the outbox."""
        async with self._pool.acquire() as connection:
            rows = await fetch_all(self._sql.waiting_among(connection, tenant=tenant, ids=list(memory_ids)))
        return {row["memory_id"] for row in rows}

    async def enqueue(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Have these memories indexed again."""
        async with self._accounts.locked(tenant) as connection:
            await self._sql.enqueue_memories(connection, tenant=tenant, ids=sorted(memory_ids))
