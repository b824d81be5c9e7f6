"""The index outbox: leased in SQL, replayed after a crash, by any number of replicas with the index's embedder."""

from collections.abc import Sequence
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Connection, Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.rows import Row
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.phrasing import phrase
from caisson.memory.domain.relaying import HOPELESS_ATTEMPTS, Backlog, Done, Due, Indexable, Size, delay_s

_ROUND_BYTES = 256 * 1024
_LEAST_OF_ONE_TENANT = 8


class PostgresIndexOutbox:
    """The domain's `IndexOutbox`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts, *, embedder: str, lease_s: float = 30) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts
        self._embedder = embedder
        self._lease_s = float(lease_s)

    async def lease(self, size: Size, *, limit: int, after: str) -> list[Due]:
        """Take due work that nobody holds, of each tenant the oldest, tenants in turn from the one after `after`."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.due_in_turn(
                    connection,
                    is_long=size is Size.LONG,
                    most_bytes=_ROUND_BYTES,
                    least=_LEAST_OF_ONE_TENANT,
                    after=after,
                    limit=limit,
                )
            )
            places = {(row["tenant_id"], row["memory_id"]): place for place, row in enumerate(rows)}
            leased = await self._lease(connection, list(places), size=size)
        return sorted(leased, key=lambda due: places[due.tenant, due.memory_id])

    async def lease_these(
        self, tenant: TenantId, memory_ids: Sequence[str], *, size: Size | None = None
    ) -> list[Due]:
        """Take the work about these memories that nobody holds; of one size alone, or of both."""
        async with acquire(self._pool) as connection:
            return await self._lease(connection, [(tenant, memory_id) for memory_id in memory_ids], size=size)

    async def keep(self, dues: Sequence[Due]) -> set[int]:
        """Hold on to work and return the leases that are still held: nothing of the others may be written."""
        async with acquire(self._pool) as connection:
            lasting = self._sql.held_index_work(
                connection,
                tenants=[due.tenant for due in dues],
                ids=[due.memory_id for due in dues],
                leases=[due.lease for due in dues],
                lasting_s=self._lease_s / 2,
            )
            held = {row["lease"] for row in await fetch_all(lasting)}
        ending = [due for due in dues if due.lease not in held]
        for tenant in dict.fromkeys(due.tenant for due in ending):
            own = [due for due in ending if due.tenant == tenant]
            async with self._accounts.locked(tenant) as connection:
                prolonged = self._sql.prolong_index_work(
                    connection,
                    tenant=tenant,
                    ids=[due.memory_id for due in own],
                    leases=[due.lease for due in own],
                    lease_s=self._lease_s,
                )
                held |= {row["lease"] for row in await fetch_all(prolonged)}
        return held

    async def waiting(self, tenant: TenantId, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the memories that wait."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.waiting_among(connection, tenant=tenant, ids=list(memory_ids)))
        return {row["memory_id"] for row in rows}

    async def unremoved(self, tenant: TenantId) -> list[str]:
        """Return the deleted memories of a tenant whose points may still be there."""
        async with acquire(self._pool) as connection:
            return [row["memory_id"] for row in await fetch_all(self._sql.unremoved(connection, tenant=tenant))]

    async def settle(self, done: Sequence[Done]) -> None:
        """Take work off; what changed meanwhile stays and is due at once."""
        for tenant in dict.fromkeys(item.due.tenant for item in done):
            own = [item for item in done if item.due.tenant == tenant]
            async with self._accounts.locked(tenant) as connection:
                await self._sql.settle_index_work(
                    connection,
                    tenant=tenant,
                    ids=[item.due.memory_id for item in own],
                    generations=[item.due.generation for item in own],
                    versions=[item.due.memory.version if item.due.memory else None for item in own],
                    chunks=[item.chunks for item in own],
                    embedder=self._embedder,
                )

    async def postpone(self, dues: Sequence[Due], *, error: str) -> None:
        """Give work back for later."""
        for tenant in dict.fromkeys(due.tenant for due in dues):
            own = [due for due in dues if due.tenant == tenant]
            async with self._accounts.locked(tenant) as connection:
                await self._sql.postpone_index_work(
                    connection,
                    tenant=tenant,
                    ids=[due.memory_id for due in own],
                    delays_s=[delay_s(due.attempts) for due in own],
                    error=error,
                )

    async def settle_deleted(self, tenant: TenantId, memory_ids: Sequence[str]) -> int:
        """Take work about deleted memories off; return how much of it a relay still holds."""
        async with self._accounts.locked(tenant) as connection:
            return int(
                await self._sql.settle_deleted(
                    connection, tenant=tenant, ids=list(memory_ids), embedder=self._embedder
                )
            )

    async def release_all(self) -> None:
        """Give back what a process that is gone had taken. Only where there is one replica."""
        async with acquire(self._pool) as connection:
            await self._sql.release_index_work(connection)

    async def backlog(self) -> Backlog:
        """Return how much waits, and how long the oldest has."""
        async with acquire(self._pool) as connection:
            row = await self._sql.index_outbox_age(connection, hopeless=HOPELESS_ATTEMPTS)
        return Backlog(waiting=row["waiting"], failing=row["failing"], oldest_s=row["oldest_s"])

    async def _lease(
        self, connection: Connection, keys: Sequence[tuple[TenantId, str]], *, size: Size | None
    ) -> list[Due]:
        if not keys:
            return []
        rows = self._sql.lease_index_work(
            connection,
            tenants=[tenant for tenant, _ in keys],
            ids=[memory_id for _, memory_id in keys],
            is_long=None if size is None else size is Size.LONG,
            lease_s=self._lease_s,
            embedder=self._embedder,
        )
        return [_due(row) for row in await fetch_all(rows)]


def _due(row: Row) -> Due:
    return Due(
        tenant=TenantId(row["tenant_id"]),
        memory_id=row["memory_id"],
        generation=row["generation"],
        lease=row["lease"],
        attempts=row["attempts"],
        memory=None if row["version"] is None else _indexable(row),
    )


def _indexable(row: Row) -> Indexable:
    return Indexable(
        version=row["version"],
        text=phrase(row["text"], row["subject"], row["attribute"]),
        scopes=frozenset(row["scopes"]),
        layer=Layer(row["layer"]),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        expires_at=row["expires_at"],
        chunks=row["chunks"],
    )
