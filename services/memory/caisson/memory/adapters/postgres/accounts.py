"""The tenant's lock and its quotas. Invariant: whoever writes memories of a tenant opened its account first."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from caisson.common.errors import QuotaExceeded
from caisson.common.ids import TenantId, UserId
from caisson.common.postgres import Connection, Pool, fetch_all
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.quotas import Account, Exceeded, Holding, Quotas, judge

_EXPIRED_PER_WRITE = 1_000


class Accounts:
    """What tenants and users hold, and what they may: the domain's `Holdings`."""

    def __init__(self, pool: Pool, queries: Any, *, quotas: Quotas, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._clock = clock
        self.quotas = quotas

    async def held(self, principal: Principal) -> tuple[Account, Quotas]:
        """Return what a user and its tenant hold, and their quotas."""
        async with self._pool.acquire() as connection:
            return await self.read(connection, principal.tenant, principal.user), self.quotas

    async def open(self, connection: Connection, tenant: TenantId, user: UserId) -> Account:
        """Take the tenant's lock until the transaction ends, and return what is held."""
        await self._sql.lock_tenant(connection, tenant=tenant)
        return await self.read(connection, tenant, user)

    async def read(self, connection: Connection, tenant: TenantId, user: UserId) -> Account:
        """Return what is held, without the lock."""
        row = await self._sql.account(connection, tenant=tenant, user=user)
        return Account(
            user=Holding(rows=row["user_rows"], bytes=row["user_bytes"]),
            tenant=Holding(rows=row["tenant_rows"], bytes=row["tenant_bytes"]),
        )

    async def close(self, connection: Connection, tenant: TenantId, user: UserId, before: Account) -> None:
        """Raise QuotaExceeded where the transaction took too much; expired memories make room first."""
        verdict = judge(before, await self.read(connection, tenant, user), self.quotas)
        if isinstance(verdict, Exceeded):
            expired = self._sql.drop_expired(connection, tenant=tenant, now=self._clock(), limit=_EXPIRED_PER_WRITE)
            if await fetch_all(expired):
                verdict = judge(before, await self.read(connection, tenant, user), self.quotas)
        if isinstance(verdict, Exceeded):
            raise QuotaExceeded(verdict.told)
