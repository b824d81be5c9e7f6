"""Sessions: conversations that group runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from caisson.common.errors import Conflict
from caisson.common.ids import SessionId, TenantId, UserId
from caisson.gateway.domain.pages import Page, PageRequest


class SessionDeleting(Conflict):
    """The session is being deleted: nothing begins in it, and its id is never used again."""

    code = "session_deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of a user; `deleting_at` is None but while it is being deleted."""

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId
    metadata: dict[str, object]
    created_at: datetime
    deleting_at: datetime | None = None


class Sessions(Protocol):
    """The ledger's sessions."""

    async def create(
        self, session_id: SessionId, *, tenant: TenantId, user: UserId, metadata: dict[str, object]
    ) -> Session:
        """Store a session; one that exists already is returned. Raises SessionDeleting where it was deleted."""

    async def get(self, session_id: SessionId, tenant: TenantId) -> Session:
        """Return a session of the tenant, or raise NotFound."""

    async def page(self, tenant: TenantId, request: PageRequest) -> Page[Session]:
        """Return sessions, newest first."""
