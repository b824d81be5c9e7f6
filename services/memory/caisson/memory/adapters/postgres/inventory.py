"""What the index should hold, and with which embedder it was made."""

from collections.abc import Sequence
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, fetch_all, transaction
from caisson.memory.domain.indexing import EmbedderIdentity


class PostgresInventory:
    """The domain's `Inventory` and `Embeddings`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

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
        async with self._pool.acquire() as connection:
            await self._sql.enqueue_memories(connection, tenant=tenant, ids=sorted(memory_ids))

    async def embedding(self) -> EmbedderIdentity | None:
        """Return what the index was made with; None where there is none yet."""
        async with self._pool.acquire() as connection:
            row = await self._sql.read_embedding(connection)
        if row is None:
            return None
        return EmbedderIdentity(name=row["name"], dimensions=row["dimensions"], digest=row["digest"])

    async def embed_with(self, identity: EmbedderIdentity) -> None:
        """From now on this embedder is the index's; every memory made with another waits in the outbox."""
        async with transaction(self._pool) as connection:
            await self._sql.set_embedding(
                connection, name=identity.name, dimensions=identity.dimensions, digest=identity.digest
            )
            await self._sql.enqueue_everything(connection, digest=identity.digest)
