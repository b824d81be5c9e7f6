"""Sessions: conversations that group runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from caisson.common.ids import SessionId, TenantId, UserId
from caisson.gateway.domain.pages import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of a user."""

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId
    metadata: dict[str, object]
    created_at: datetime


class Sessions(Protocol):
    """The ledger's sessions."""

    async def create(
        self, session_id: SessionId, *, tenant: TenantId, user: UserId, metadata: dict[str, object]
    ) -> Session:
        """Store a session; one that exists already is returned."""

    async def get(self, session_id: SessionId, tenant: TenantId) -> Session:
        """Return a session of the tenant, or raise NotFound."""

    async def page(self, tenant: TenantId, request: PageRequest) -> Page[Session]:
        """Return sessions, newest first."""
