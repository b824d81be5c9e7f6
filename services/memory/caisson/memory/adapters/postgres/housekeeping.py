"""What the sweep does, a page at a time under its lease. Invariant: a read never waits for it; it only tidies up."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from caisson.common.ids import TenantId, UserId
from caisson.common.postgres import Pool, acquire, fetch_all, transaction
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.events import Fact, record
from caisson.memory.adapters.postgres.leases import hold
from caisson.memory.adapters.postgres.rows import memory_of
from caisson.memory.domain.housekeeping import Unused
from caisson.memory.domain.leasing import Lease
from caisson.memory.domain.lifetimes import SOONEST_COLD, has_gone_cold
from caisson.memory.domain.memories import Memory

_TENANTS = 50
_PAGE = 500
_RETRIEVAL_DAYS = 30
_RECEIPT_DAYS = 90
_ENDED_DAYS = 90
_UNFINISHED_DAYS = 2


class PostgresHousekeeping:
    """The domain's `Housekeeping`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts
        self._clock = clock

    async def drop_expired(self, lease: Lease) -> int:
        """Delete some expired memories of some tenants; return how many."""
        now = self._clock()
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.tenants_with_expired(connection, now=now, memories=_PAGE, limit=_TENANTS)
            )
        return sum([await self._drop_expired_of(TenantId(row["tenant_id"]), now, lease) for row in rows])

    async def count_uses(self, lease: Lease) -> int:
        """Note the time of use of what recalls of some tenants returned; return of how many."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.tenants_with_uses(connection, limit=_TENANTS))
        for row in rows:
            async with self._accounts.locked(TenantId(row["tenant_id"]), lease=lease) as connection:
                await self._sql.count_uses(connection, tenant=row["tenant_id"])
        return len(rows)

    async def cool_unused(self, after: Unused, lease: Lease) -> tuple[int, Unused]:
        """Look at a page of the longest unused memories and let the weak ones go cold."""
        now = self._clock()
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.long_unused(
                    connection,
                    before=now - SOONEST_COLD,
                    after_at=after.used_at,
                    after_tenant=after.tenant,
                    after_id=after.memory_id,
                    limit=_PAGE,
                )
            )
        seen = [memory_of(row) for row in rows]
        weak = [memory for memory in seen if has_gone_cold(memory, now)]
        for tenant in dict.fromkeys(memory.tenant for memory in weak):
            own = [memory for memory in weak if memory.tenant == tenant]
            async with self._accounts.locked(tenant, lease=lease) as connection:
                await fetch_all(
                    self._sql.cool_memories(
                        connection,
                        tenant=tenant,
                        ids=[memory.memory_id for memory in own],
                        versions=[memory.version for memory in own],
                        now=now,
                    )
                )
        return len(weak), _following(seen)

    async def drop_old_records(self, lease: Lease) -> None:
        """Delete old recalls, receipts, unfinished jobs, and names of ended sessions."""
        async with transaction(self._pool) as connection:
            await hold(self._sql, connection, lease)
            await self._sql.drop_old_retrievals(connection, days=_RETRIEVAL_DAYS)
            await self._sql.drop_ended_sessions(connection, days=_ENDED_DAYS)
            await self._sql.drop_old_jobs(connection, receipt_days=_RECEIPT_DAYS, unfinished_days=_UNFINISHED_DAYS)

    async def _drop_expired_of(self, tenant: TenantId, now: datetime, lease: Lease) -> int:
        async with self._accounts.locked(tenant, lease=lease) as connection:
            rows = await fetch_all(self._sql.drop_expired(connection, tenant=tenant, now=now, limit=_PAGE))
            ids = [row["memory_id"] for row in rows]
            await self._sql.forget_successors(connection, tenant=tenant, ids=ids)
            await self._sql.forget_retrieved(connection, tenant=tenant, ids=ids)
            for user in dict.fromkeys(row["user_id"] for row in rows):
                theirs = [row["memory_id"] for row in rows if row["user_id"] == user]
                fact = Fact(type="memory.forgotten", data={"ids": theirs, "reason": "expired"})
                await record(self._sql, connection, tenant, UserId(user), [fact])
        return len(rows)


def _following(seen: list[Memory]) -> Unused:
    if len(seen) < _PAGE:
        return Unused()
    last = seen[-1]
    return Unused(used_at=last.used_at, tenant=last.tenant, memory_id=last.memory_id)
