"""The tenant's lock and its quotas. Invariant: whoever writes memories of a tenant opened its account first."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from caisson.common.errors import QuotaExceeded
from caisson.common.ids import TenantId, UserId
from caisson.common.postgres import Connection, Pool, acquire, fetch_all, transaction
from caisson.memory.adapters.postgres.leases import hold
from caisson.memory.domain.leasing import Lease
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.quotas import Account, Exceeded, Holding, Quotas, judge

_EXPIRED_PER_WRITE = 1_000


class Accounts:
    """What tenants and users hold, and what they may: the domain's `Holdings`."""

    def __init__(self, pool: Pool, queries: Any, *, quotas: Quotas, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._clock = clock
        self._turns: dict[TenantId, _Turn] = {}
        self.quotas = quotas

    async def held(self, principal: Principal) -> tuple[Account, Quotas]:
        """Return what a user and its tenant hold, and their quotas."""
        async with acquire(self._pool) as connection:
            return await self.read(connection, principal.tenant, principal.user), self.quotas

    @asynccontextmanager
    async def writing(
        self, tenant: TenantId, user: UserId, *, lease: Lease | None = None
    ) -> AsyncIterator[tuple[Connection, Account]]:
        """Hold a transaction with the tenant's lock, and tell what is held."""
        async with self.locked(tenant, lease=lease) as connection:
            yield connection, await self.read(connection, tenant, user)

    @asynccontextmanager
    async def locked(self, tenant: TenantId, *, lease: Lease | None = None) -> AsyncIterator[Connection]:
        """Hold a transaction with the tenant's lock: whoever changes its memories or their outbox has it.

        Within this process a tenant's writers wait for each other without a connection, so that a busy tenant
        leaves the pool to the others.

        Raises:
            LeaseLost: periodic work names its lease, and another replica has it.
        """
        async with self._turn(tenant), transaction(self._pool) as connection:
            await self._sql.lock_tenant(connection, tenant=tenant)
            if lease is not None:
                await hold(self._sql, connection, lease)
            yield connection

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

    @asynccontextmanager
    async def _turn(self, tenant: TenantId) -> AsyncIterator[None]:
        turn = self._turns.setdefault(tenant, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if turn.waiting == 0:
                self._turns.pop(tenant, None)


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
