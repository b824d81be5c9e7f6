"""`/v1/security-events`: what guards, proxy and network blocked."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import InvalidInput
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.models import PageAnswer, SecurityEventAnswer
from caisson.gateway.domain.pages import request_page
from caisson.gateway.domain.security import SecurityLog, SecurityRecord


def routes(callers: Callers, log: SecurityLog) -> APIRouter:
    """Return the route."""
    router = APIRouter(route_class=StrictRoute, tags=["security"])

    @router.get("/v1/security-events", response_model=PageAnswer[SecurityEventAnswer])
    async def list_security_events(
        request: Request,
        since: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Response:
        """List security events, newest first: of the caller's tenant, or for a platform key without one, of all."""
        caller = await callers.recognise(request)
        page = await log.page(
            request_page(limit, cursor), tenant=caller.principal.tenant, since=_moment(since), run=run_id
        )
        items = [_security_event_answer(event) for event in page.items]
        return answer(PageAnswer[SecurityEventAnswer](items=items, next_cursor=page.next_cursor))

    return router


def _moment(value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("an RFC 3339 time, for example 2026-01-31T12:00:00Z", field="since") from error
    raise InvalidInput("a time with its offset, for example 2026-01-31T12:00:00Z", field="since")


def _security_event_answer(event: SecurityRecord) -> SecurityEventAnswer:
    return SecurityEventAnswer(
        id=event.event_id,
        kind=event.kind,
        tenant_id=event.tenant_id,
        user_id=event.user_id,
        session_id=event.session_id,
        run_id=event.run_id,
        step_id=event.step_id,
        guard=event.guard,
        reason=event.reason,
        snippet=event.snippet,
        detail=event.detail,
        occurred_at=event.occurred_at,
    )
