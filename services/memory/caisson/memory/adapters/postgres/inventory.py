"""What the index should hold, by the store."""

from collections.abc import Mapping, Sequence
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.domain.leasing import Lease
from caisson.memory.domain.reconciling import Placed, Wanted


class PostgresInventory:
    """The domain's `Inventory`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts

    async def next_tenant(self, after: str) -> TenantId | None:
        """Return the next tenant, in a fixed order, that ever remembered anything."""
        async with acquire(self._pool) as connection:
            found = await self._sql.next_tenant(connection, after=after)
        return None if found is None else TenantId(found)

    async def page(self, tenant: TenantId, after: str, limit: int) -> list[str]:
        """Return the next memories, in a fixed order, that the index should hold something of."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.indexable_page(connection, tenant=tenant, after=after, limit=limit))
        return [row["memory_id"] for row in rows]

    async def wanted(self, tenant: TenantId, memory_ids: Sequence[str]) -> dict[str, Wanted | None]:
        """Return, of one moment, what the index must hold of these; None where that waits in the outbox."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.wanted_points(connection, tenant=tenant, ids=list(memory_ids)))
        return {
            row["memory_id"]: None if row["waits"] else Wanted(version=row["version"], points=row["points"])
            for row in rows
        }

    async def unknown(self, memories: Sequence[Placed]) -> list[Placed]:
        """Return those of which the index must hold nothing, but for what waits in the outbox."""
        tenants, ids = [tenant for tenant, _ in memories], [memory_id for _, memory_id in memories]
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.unknown_points(connection, tenants=tenants, ids=ids))
        return [(TenantId(row["tenant_id"]), row["memory_id"]) for row in rows]

    async def enqueue(self, tenant: TenantId, held: Mapping[str, int], *, lease: Lease | None = None) -> None:
        """Have these memories indexed again, of which the index holds so many points now."""
        ids = sorted(held)
        async with self._accounts.locked(tenant, lease=lease) as connection:
            await self._sql.enqueue_memories(
                connection, tenant=tenant, ids=ids, points=[held[memory_id] for memory_id in ids]
            )
