"""What guards, proxy and network blocked, as the API tells it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from caisson.common.ids import TenantId
from caisson.gateway.domain.pages import Page, PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityRecord:
    """One blocked, rewritten or refused thing."""

    event_id: str
    place: int
    kind: str
    tenant_id: str
    user_id: str
    session_id: str | None
    run_id: str
    step_id: str | None
    guard: str | None
    reason: str
    snippet: str | None
    detail: dict[str, Any]
    occurred_at: datetime


class SecurityLog(Protocol):
    """The ledger's security events."""

    async def page(
        self, request: PageRequest, *, tenant: TenantId | None, since: datetime | None, run: str | None
    ) -> Page[SecurityRecord]:
        """Return events, newest first; of every tenant where none is given."""
