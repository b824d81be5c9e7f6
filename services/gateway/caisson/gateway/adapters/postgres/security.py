"""The security events of the ledger."""

from datetime import datetime
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.leases import SecurityEvent
from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.gateway.domain.leasing import security_data
from caisson.gateway.domain.pages import Page, PageRequest, paginate
from caisson.gateway.domain.security import SecurityRecord


class PostgresSecurityLog:
    """The domain's `SecurityLog`, and where the proxy's reports are recorded."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def page(
        self, request: PageRequest, *, tenant: TenantId | None, since: datetime | None, run: str | None
    ) -> Page[SecurityRecord]:
        """Return events, newest first; of every tenant where none is given."""
        before = None if request.before is None else request.number
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.list_security_events(
                    connection, tenant=tenant, since=since, run=run, before=before, limit=request.limit + 1
                )
            )
        records = [SecurityRecord(**row) for row in rows]
        return paginate(records, [str(record.place) for record in records], request)

    async def record(self, event: SecurityEvent) -> None:
        """Record a report once, by its id; one about an unknown run changes nothing."""
        async with acquire(self._pool) as connection:
            await self._sql.record_security(
                connection,
                run=event.run_id,
                event_id=event.id,
                kind=event.kind,
                guard=event.guard,
                reason=event.reason,
                snippet=event.snippet,
                detail=event.detail,
                data=security_data(event),
            )
