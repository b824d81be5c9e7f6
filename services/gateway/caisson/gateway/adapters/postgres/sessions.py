"""Sessions in the ledger."""

from typing import Any

from caisson.common.errors import NotFound
from caisson.common.ids import SessionId, TenantId, UserId
from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.gateway.domain.pages import Page, PageRequest, paginate
from caisson.gateway.domain.sessions import Session, SessionDeleting


class PostgresSessions:
    """The domain's `Sessions`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def create(
        self, session_id: SessionId, *, tenant: TenantId, user: UserId, metadata: dict[str, object]
    ) -> Session:
        """Store a session; one that exists already is returned. Raises SessionDeleting where it was deleted."""
        async with acquire(self._pool) as connection:
            row = await self._sql.create_session(
                connection, session=session_id, tenant=tenant, user=user, metadata=metadata
            )
        if row is None:
            raise SessionDeleting("the session of this id was deleted")
        return Session(**row)

    async def get(self, session_id: SessionId, tenant: TenantId) -> Session:
        """Return a session of the tenant, or raise NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.get_session(connection, session=session_id, tenant=tenant)
        if row is None:
            raise NotFound("no such session")
        return Session(**row)

    async def page(self, tenant: TenantId, request: PageRequest) -> Page[Session]:
        """Return sessions, newest first."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.list_sessions(connection, tenant=tenant, before=request.before, limit=request.limit + 1)
            )
        sessions = [Session(**row) for row in rows]
        return paginate(sessions, [session.session_id for session in sessions], request)
