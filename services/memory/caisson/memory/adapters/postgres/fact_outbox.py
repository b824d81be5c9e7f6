"""Facts that JetStream has not acknowledged. Invariant: a row goes only with its PubAck."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from caisson.common.envelope import Envelope
from caisson.common.postgres import Connection, Pool, acquire, fetch_all, transaction
from caisson.memory.adapters.postgres.rows import Row
from caisson.memory.domain.relaying import Backlog

_BATCH = 100


class PostgresFactOutbox:
    """The domain's `FactOutbox`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    @asynccontextmanager
    async def batch(self) -> AsyncIterator["HeldFacts"]:
        """Hold the oldest unsent facts while they are published; no other relay sees them meanwhile."""
        async with transaction(self._pool) as connection:
            rows = await fetch_all(self._sql.lock_unsent_facts(connection, limit=_BATCH))
            yield HeldFacts(connection, self._sql, [_envelope(row) for row in rows])

    async def backlog(self) -> Backlog:
        """Return how many facts are unsent and how old the oldest is."""
        async with acquire(self._pool) as connection:
            row = await self._sql.unsent_facts(connection)
        return Backlog(waiting=row["unsent"], oldest_s=row["oldest_s"])


class HeldFacts:
    """Unsent facts, oldest first, held by this relay."""

    def __init__(self, connection: Connection, queries: Any, facts: list[Envelope]) -> None:
        self._connection = connection
        self._sql = queries
        self.facts = facts

    @property
    def is_full(self) -> bool:
        """Whether there may be more than this."""
        return len(self.facts) >= _BATCH

    async def mark_sent(self, facts: Sequence[Envelope]) -> None:
        """Drop facts that were acknowledged."""
        await self._sql.drop_sent_facts(self._connection, ids=[fact.id for fact in facts])


def _envelope(row: Row) -> Envelope:
    return Envelope(
        id=row["event_id"],
        type=row["type"],
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        run_id=row["run_id"],
        occurred_at=row["occurred_at"],
        data=row["data"],
    )
