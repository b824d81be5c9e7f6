"""What the sweep does, a page at a time. Invariant: a read never waits for it; it only tidies up."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from caisson.common.ids import TenantId, UserId
from caisson.common.postgres import Pool, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.events import Fact, record
from caisson.memory.adapters.postgres.rows import memory_of
from caisson.memory.domain.lifetimes import SOONEST_COLD, has_gone_cold

_TENANTS = 50
_PAGE = 500
_RETRIEVAL_DAYS = 30
_RECEIPT_DAYS = 90
_UNFINISHED_DAYS = 2
_BEGINNING = (datetime.min.replace(tzinfo=UTC), "", "")


class PostgresHousekeeping:
    """The domain's `Housekeeping`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts
        self._clock = clock
        self._unused_after = _BEGINNING

    async def drop_expired(self) -> int:
        """Delete some expired memories of some tenants; return how many."""
        now = self._clock()
        async with self._pool.acquire() as connection:
            rows = await fetch_all(self._sql.tenants_with_expired(connection, now=now, limit=_TENANTS))
        return sum([await self._drop_expired_of(TenantId(row["tenant_id"]), now) for row in rows])

    async def count_uses(self) -> None:
        """Note the time of use of what recalls returned."""
        async with self._pool.acquire() as connection:
            rows = await fetch_all(self._sql.tenants_with_uses(connection, limit=_TENANTS))
        for row in rows:
            async with self._accounts.writing(TenantId(row["tenant_id"]), UserId("")) as (connection, _):
                await self._sql.count_uses(connection, tenant=row["tenant_id"])

    async def cool_unused(self) -> int:
        """Look at a page of the longest unused memories and let the weak ones go cold; return how many."""
        now = self._clock()
        after_at, after_tenant, after_id = self._unused_after
        async with self._pool.acquire() as connection:
            rows = await fetch_all(
                self._sql.long_unused(
                    connection,
                    before=now - SOONEST_COLD,
                    after_at=after_at,
                    after_tenant=after_tenant,
                    after_id=after_id,
                    limit=_PAGE,
                )
            )
        seen = [memory_of(row) for row in rows]
        last = seen[-1] if len(seen) == _PAGE else None
        self._unused_after = (last.used_at, last.tenant, last.memory_id) if last else _BEGINNING
        weak = [memory for memory in seen if has_gone_cold(memory, now)]
        for tenant in dict.fromkeys(memory.tenant for memory in weak):
            own = [memory for memory in weak if memory.tenant == tenant]
            async with self._accounts.writing(tenant, UserId("")) as (connection, _):
                await fetch_all(
                    self._sql.cool_memories(
                        connection,
                        tenant=tenant,
                        ids=[memory.memory_id for memory in own],
                        versions=[memory.version for memory in own],
                        now=now,
                    )
                )
        return len(weak)

    async def drop_old_records(self) -> None:
        """Delete old recalls, receipts and unfinished jobs."""
        async with self._pool.acquire() as connection:
            await self._sql.drop_old_retrievals(connection, days=_RETRIEVAL_DAYS)
            await self._sql.drop_old_jobs(connection, receipt_days=_RECEIPT_DAYS, unfinished_days=_UNFINISHED_DAYS)

    async def _drop_expired_of(self, tenant: TenantId, now: datetime) -> int:
        async with self._accounts.writing(tenant, UserId("")) as (connection, _):
            rows = await fetch_all(self._sql.drop_expired(connection, tenant=tenant, now=now, limit=_PAGE))
            ids = [row["memory_id"] for row in rows]
            await self._sql.forget_successors(connection, tenant=tenant, ids=ids)
            await self._sql.forget_retrieved(connection, tenant=tenant, ids=ids)
            for user in dict.fromkeys(row["user_id"] for row in rows):
                theirs = [row["memory_id"] for row in rows if row["user_id"] == user]
                fact = Fact(type="memory.forgotten", data={"ids": theirs, "reason": "expired"})
                await record(self._sql, connection, tenant, UserId(user), [fact])
        return len(rows)
