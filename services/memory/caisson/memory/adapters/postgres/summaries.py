"""Making summaries again inside a transaction that changed their sources. Extractive, so no model has to answer."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Connection, fetch_all
from caisson.memory.adapters.postgres.rows import memory_of
from caisson.memory.domain.consolidation import said, summarise
from caisson.memory.domain.hashing import content_hash
from caisson.memory.domain.terms import terms


class Summaries:
    """Rebuilds memories from their sources."""

    def __init__(self, sql: Any, connection: Connection, tenant: TenantId, *, now: datetime) -> None:
        self._sql = sql
        self._connection = connection
        self._tenant = tenant
        self._now = now

    async def rebuild(self, plan: Mapping[str, Sequence[str]], *, wipe: bool) -> list[str]:
        """Make each summary again from its sources, in the plan's order; return those that could not be.

        Args:
            plan: the sources of each summary.
            wipe: whether the texts before go from their histories.
        """
        return [
            summary for summary, sources in plan.items() if not await self._rebuild(summary, list(sources), wipe=wipe)
        ]

    async def _rebuild(self, summary: str, sources: list[str], *, wipe: bool) -> bool:
        rows = await fetch_all(self._sql.memories_among(self._connection, tenant=self._tenant, ids=sources))
        text = summarise([said(memory_of(row)) for row in rows])
        hashed = content_hash(self._tenant, text)
        if await self._sql.twin_of(self._connection, tenant=self._tenant, memory=summary, content_hash=hashed):
            return False
        await self._sql.rebuild_summary(
            self._connection,
            tenant=self._tenant,
            memory=summary,
            text=text,
            content_hash=hashed,
            terms=terms(text),
            wipe=wipe,
            now=self._now,
        )
        return True
