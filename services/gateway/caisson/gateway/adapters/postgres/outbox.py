"""The outbox: unsent events of the ledger, in order inside a run, by any number of relays."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

from caisson.common.envelope import Envelope
from caisson.common.postgres import Connection, Pool, acquire, fetch_all, transaction
from caisson.gateway.domain.outbox import OutboxAge, Unsent

_RUNS_PER_BATCH = 64


class PostgresOutbox:
    """The domain's `Outbox`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    @asynccontextmanager
    async def batch(self) -> AsyncIterator["HeldBatch"]:
        """Hold the unsent events of up to 64 runs, and as many deletions of sessions, while they are published; no
        other relay sees them meanwhile."""
        async with transaction(self._pool) as connection:
            heads = await fetch_all(self._sql.lock_unsent_heads(connection, limit=_RUNS_PER_BATCH))
            runs = [row["run_id"] for row in heads]
            rows = await fetch_all(self._sql.unsent_events(connection, runs=runs)) if runs else []
            ended = await fetch_all(self._sql.lock_untold_deletions(connection, limit=_RUNS_PER_BATCH))
            events = [*map(_unsent, rows), *map(_deletion, ended)]
            yield HeldBatch(connection, self._sql, events)

    async def age(self) -> OutboxAge:
        """Return how many events are unsent and how old the oldest is."""
        async with acquire(self._pool) as connection:
            row = await self._sql.outbox_age(connection)
        return OutboxAge(unsent=row["unsent"], oldest_s=row["oldest_s"])


class HeldBatch:
    """Unsent events by run or session, in order, held by this relay."""

    def __init__(self, connection: Connection, queries: Any, events: list[Unsent]) -> None:
        self._connection = connection
        self._sql = queries
        self.in_order = [list(group) for _, group in groupby(events, key=lambda event: event.about)]

    @property
    def is_full(self) -> bool:
        """Whether there may be more than this."""
        return len(self.in_order) >= _RUNS_PER_BATCH

    async def mark_sent(self, events: Sequence[Unsent]) -> None:
        """Mark events as published."""
        of_runs = [event for event in events if event.envelope.run_id]
        sessions = [event.about for event in events if not event.envelope.run_id]
        if of_runs:
            await self._sql.mark_sent(
                self._connection, runs=[event.about for event in of_runs], seqs=[event.seq for event in of_runs]
            )
        if sessions:
            await self._sql.mark_told(self._connection, sessions=sessions)


def _unsent(row: Any) -> Unsent:
    envelope = Envelope(
        id=f"{row['run_id']}:{row['seq']}",
        type=row["type"],
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        run_id=row["run_id"],
        step_id=row["step_id"],
        occurred_at=row["occurred_at"],
        data=row["data"],
    )
    return Unsent(seq=row["seq"], envelope=envelope, traceparent=row["traceparent"])


def _deletion(row: Any) -> Unsent:
    envelope = Envelope(
        id=f"{row['session_id']}:deleted",
        type="session.deleted",
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        occurred_at=row["deleted_at"],
        data={"removed": row["removed"]},
    )
    return Unsent(seq=1, envelope=envelope, traceparent=None)
