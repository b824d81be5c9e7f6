"""Deletions of sessions in the ledger. The mark is the queue, and locked rows are the lease of who works on them."""

from collections.abc import Sequence
from typing import Any

from caisson.common.errors import NotFound
from caisson.common.ids import RunId, SessionId, TenantId
from caisson.common.postgres import Connection, Pool, acquire, fetch_all, transaction
from caisson.gateway.domain.deleting import Doomed
from caisson.gateway.domain.idempotency import Stored
from caisson.gateway.domain.sessions import Session

_SESSIONS = 50
_RUNS = 50


class PostgresDeletions:
    """The domain's `Deletions`. `gone` is what a key answers whose object was deleted."""

    def __init__(self, pool: Pool, queries: Any, *, gone: Stored) -> None:
        self._pool = pool
        self._sql = queries
        self._gone = gone

    async def begin(self, session_id: SessionId, tenant: TenantId) -> Session | None:
        """Mark a session, so that nothing begins in it; None where it is deleted already. Raises NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.mark_session_deleting(connection, session=session_id, tenant=tenant)
        if row is None:
            raise NotFound("no such session")
        fields = dict(row)
        return None if fields.pop("is_deleted") else Session(**fields)

    async def page(self, after: str) -> list[Doomed]:
        """Return sessions that are being deleted, in the order of their ids."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.sessions_being_deleted(connection, after=after, limit=_SESSIONS))
        return [Doomed(**row) for row in rows]

    async def to_cancel(self, session_id: SessionId) -> Sequence[RunId]:
        """Return some runs that have not ended and that nobody has cancelled."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.runs_to_cancel(connection, session=session_id, limit=_RUNS))
        return [RunId(row["run_id"]) for row in rows]

    async def remove_runs(self, session_id: SessionId) -> int:
        """Remove some ended runs with all that was stored of them, once the bus has their events; return how many."""
        async with transaction(self._pool) as connection:
            rows = await fetch_all(self._sql.lock_removable_runs(connection, session=session_id, limit=_RUNS))
            runs = [row["run_id"] for row in rows]
            if runs:
                await self._forget_answers(connection, runs)
                await self._sql.remove_runs(connection, session=session_id, runs=runs)
        return len(runs)

    async def is_empty(self, session_id: SessionId) -> bool:
        """Whether no run is left."""
        async with acquire(self._pool) as connection:
            return not await self._sql.has_runs(connection, session=session_id)

    async def close(self, session_id: SessionId) -> bool:
        """Keep nothing of a session without runs but that it was deleted; return whether that is so now."""
        async with transaction(self._pool) as connection:
            closed = await self._sql.close_session(connection, session=session_id)
            if closed is None:
                return bool(await self._sql.is_session_deleted(connection, session=session_id))
            await self._forget_answers(connection, [session_id])
        return True

    async def _forget_answers(self, connection: Connection, objects: list[str]) -> None:
        gone = self._gone
        await self._sql.forget_answers(
            connection, objects=objects, status=gone.status, headers=gone.headers, body=gone.body
        )
