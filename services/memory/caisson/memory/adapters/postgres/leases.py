"""Leases of periodic work, and the check that every write under one makes in its own transaction."""

from typing import Any

from caisson.common.errors import LeaseLost
from caisson.common.postgres import Connection, Pool, acquire
from caisson.memory.domain.leasing import Lease, State, Work

_LOST = "another replica does this work now"


class PostgresLeases:
    """The domain's `Leases`."""

    def __init__(self, pool: Pool, queries: Any, *, lease_s: float = 60) -> None:
        self._pool = pool
        self._sql = queries
        self._lease_s = float(lease_s)

    async def take(self, work: Work) -> Lease | None:
        """Take what is due and held by nobody."""
        async with acquire(self._pool) as connection:
            row = await self._sql.take_lease(connection, work=work, lease_s=self._lease_s)
        return None if row is None else Lease(work=work, fence=row["fence"], state=row["state"])

    async def keep(self, lease: Lease, state: State) -> None:
        """Save how far the pass is and hold on; raise LeaseLost."""
        async with acquire(self._pool) as connection:
            kept = await self._sql.keep_lease(
                connection, work=lease.work, fence=lease.fence, lease_s=self._lease_s, state=state
            )
        if kept is None:
            raise LeaseLost(_LOST)

    async def finish(self, lease: Lease, state: State, *, again_in_s: float) -> None:
        """End the pass; raise LeaseLost."""
        async with acquire(self._pool) as connection:
            finished = await self._sql.finish_lease(
                connection, work=lease.work, fence=lease.fence, again_in_s=float(again_in_s), state=state
            )
        if finished is None:
            raise LeaseLost(_LOST)

    async def give_back(self, lease: Lease) -> None:
        """Let another go on at once, if the lease is still held."""
        async with acquire(self._pool) as connection:
            await self._sql.give_lease_back(connection, work=lease.work, fence=lease.fence)

    async def overdue_s(self, work: Work) -> float:
        """Return for how long work that is due has made no step."""
        async with acquire(self._pool) as connection:
            return float(await self._sql.overdue(connection, work=work))

    async def hasten(self, work: Work) -> None:
        """Have the next pass begin now."""
        async with acquire(self._pool) as connection:
            await self._sql.hasten(connection, work=work)

    async def release_all(self) -> None:
        """Give back what a process that is gone held. Only where there is one replica."""
        async with acquire(self._pool) as connection:
            await self._sql.release_leases(connection)


async def hold(queries: Any, connection: Connection, lease: Lease) -> None:
    """Keep others from taking a lease until the transaction ends; raise LeaseLost where one has.

    PostgreSQL ends a transaction that stands still for longer than a lease: its holder hangs.
    """
    if await queries.hold_lease(connection, work=lease.work, fence=lease.fence) is None:
        raise LeaseLost(_LOST)
