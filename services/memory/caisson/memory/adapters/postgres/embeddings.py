"""With which embedder the index is made, and how much is left of embedding everything again."""

from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, acquire, transaction
from caisson.memory.domain.embedding import IndexState
from caisson.memory.domain.indexing import EmbedderIdentity
from caisson.memory.domain.relaying import HOPELESS_ATTEMPTS


class PostgresEmbeddings:
    """The domain's `Embeddings`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def embedding(self) -> EmbedderIdentity | None:
        """Return what the index is made with; None where there is none yet."""
        async with acquire(self._pool) as connection:
            row = await self._sql.read_embedding(connection)
        if row is None:
            return None
        return EmbedderIdentity(name=row["name"], dimensions=row["dimensions"], digest=row["digest"])

    async def has_points(self) -> bool:
        """Whether the store believes that the index holds anything."""
        async with acquire(self._pool) as connection:
            return bool(await self._sql.has_points(connection))

    async def embed_with(self, identity: EmbedderIdentity, *, from_scratch: bool) -> None:
        """From now on this embedder is the index's, and the index is not whole."""
        async with acquire(self._pool) as connection:
            await self._sql.set_embedding(
                connection,
                name=identity.name,
                dimensions=identity.dimensions,
                digest=identity.digest,
                from_scratch=from_scratch,
            )

    async def enqueue(self) -> None:
        """Have all that is to be embedded again wait in the outbox, a tenant a transaction."""
        async with acquire(self._pool) as connection:
            row = await self._sql.read_embedding(connection)
        if row is None or row["enqueued"]:
            return
        tenant = await self._next_tenant("")
        while tenant is not None:
            async with transaction(self._pool) as connection:
                await self._sql.lock_tenant(connection, tenant=tenant)
                await self._sql.enqueue_everything(
                    connection, tenant=tenant, digest=row["digest"], from_scratch=row["from_scratch"]
                )
            tenant = await self._next_tenant(tenant)
        async with acquire(self._pool) as connection:
            await self._sql.everything_is_enqueued(connection, digest=row["digest"])

    async def finish(self, embedder: str) -> bool:
        """Note that the index is whole if nothing is left; return whether it became so now."""
        async with acquire(self._pool) as connection:
            whole = await self._sql.index_is_whole(connection, digest=embedder, hopeless=HOPELESS_ATTEMPTS)
        return whole is not None

    async def state(self, embedder: str) -> IndexState:
        """Return how the index stands for a replica with this embedder."""
        async with acquire(self._pool) as connection:
            row = await self._sql.index_state(connection, digest=embedder, hopeless=HOPELESS_ATTEMPTS)
        return IndexState(**row)

    async def _next_tenant(self, after: str) -> TenantId | None:
        async with acquire(self._pool) as connection:
            found: TenantId | None = await self._sql.next_tenant(connection, after=after)
        return found
