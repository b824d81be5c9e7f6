"""The read side of the store. Invariant: every statement here stands behind `memory.readable` or `memory.visible`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from caisson.common.errors import NotFound
from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.rows import change_of, gate, hard, memory_of
from caisson.memory.domain.memories import Change, Memory
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.reading import EPOCH_SPAN, Confirmed, Epoch, Listing

NO_SUCH_MEMORY = "no such memory"
_MAX_INJECTED = 2_000


class PostgresReading:
    """The domain's `Reading`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def get(self, id_: str, filter_: HardFilter, *, as_of: datetime | None = None) -> Memory:
        """Return a readable memory by its id or external id, or raise NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.read_memory(
                connection, **gate(filter_), own=filter_.principal.own_scope, id=id_, as_of=as_of
            )
        if row is None:
            raise NotFound(NO_SUCH_MEMORY)
        return memory_of(row)

    async def page(self, listing: Listing, filter_: HardFilter) -> list[Memory]:
        """Return visible memories, cold ones too, newest first."""
        before = listing.before
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.list_memories(
                    connection,
                    **hard(filter_),
                    status=listing.status,
                    subject=listing.subject,
                    before_at=before.created_at if before else None,
                    before_id=before.memory_id if before else None,
                    limit=listing.limit,
                )
            )
        return [memory_of(row) for row in rows]

    async def confirm(self, memory_ids: Sequence[str], filter_: HardFilter) -> Confirmed:
        """Return those of the ids that a recall may tell now, and the epoch that they are of."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.confirm(connection, **hard(filter_), ids=list(memory_ids), horizon=filter_.now + EPOCH_SPAN)
            )
        memories = {row["memory_id"]: memory_of(row) for row in rows if row["memory_id"] is not None}
        return Confirmed(memories=memories, epoch=Epoch(changes=rows[0]["changes"], until=rows[0]["until"]))

    async def expired_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> int:
        """Count those of the ids that are the principal's to see but have expired."""
        async with acquire(self._pool) as connection:
            return int(await self._sql.expired_among(connection, **gate(filter_), ids=list(memory_ids)))

    async def history(self, id_: str, filter_: HardFilter) -> list[Change]:
        """Return every version of a memory and of its chain of facts, oldest first; or raise NotFound."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.read_history(connection, **gate(filter_), own=filter_.principal.own_scope, id=id_)
            )
        if not rows:
            raise NotFound(NO_SUCH_MEMORY)
        return [change_of(row) for row in rows]

    async def export(self, owner_scope: str, filter_: HardFilter, *, after: str | None, limit: int) -> list[Memory]:
        """Return readable memories of an owner, superseded and cold too, in the order of their ids."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.export_owned(connection, **gate(filter_), owner=owner_scope, after=after, limit=limit)
            )
        return [memory_of(row) for row in rows]

    async def injected(self, session_id: str, filter_: HardFilter) -> dict[str, str]:
        """Return by id the texts that recalls of a session returned, as far as the principal still sees them."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.injected_texts(connection, **gate(filter_), session=session_id, limit=_MAX_INJECTED)
            )
        return {row["memory_id"]: row["text"] for row in rows}
