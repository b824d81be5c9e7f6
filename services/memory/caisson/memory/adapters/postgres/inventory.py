"""What the index should hold, by the store."""

from collections.abc import Mapping
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.domain.housekeeping import Wanted


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

    async def wanted(self, tenant: TenantId) -> dict[str, Wanted | None]:
        """Return, of one moment, what the index must hold of each memory; None where that waits in the outbox."""
        async with self._pool.acquire() as connection:
            rows = await fetch_all(self._sql.wanted_points(connection, tenant=tenant))
        return {
            row["memory_id"]: None if row["waits"] else Wanted(version=row["version"], points=row["chunks"])
            for row in rows
        }

    async def enqueue(self, tenant: TenantId, held: Mapping[str, int]) -> None:
        """Have these memories indexed again, of which the index holds so many points now."""
        ids = sorted(held)
        async with self._accounts.locked(tenant) as connection:
            await self._sql.enqueue_memories(
                connection, tenant=tenant, ids=ids, points=[held[memory_id] for memory_id in ids]
            )
