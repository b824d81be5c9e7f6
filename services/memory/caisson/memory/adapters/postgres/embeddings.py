"""With which embedder the index was made."""

from typing import Any

from caisson.common.postgres import Pool, transaction
from caisson.memory.domain.indexing import EmbedderIdentity


class PostgresEmbeddings:
    """The domain's `Embeddings`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

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
