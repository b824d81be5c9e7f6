"""`/v1/sessions`."""

from collections.abc import Callable
from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import Unavailable
from caisson.common.ids import SessionId
from caisson.common.messages import Message
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.models import PageAnswer, SessionAnswer
from caisson.gateway.domain.deleting import Deleting, Doomed
from caisson.gateway.domain.pages import request_page
from caisson.gateway.domain.plans import check_metadata
from caisson.gateway.domain.sessions import Session, Sessions


class SessionRequest(Message):
    """The body of POST /v1/sessions."""

    metadata: dict[str, object] = {}


def routes(
    callers: Callers, sessions: Sessions, idempotency: Idempotency, deleting: Deleting, *, wake: Callable[[], None]
) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["sessions"])

    @router.post("/v1/sessions", status_code=201, response_model=SessionAnswer)
    async def create_session(request: Request, body: SessionRequest | None = None) -> Response:
        """Begin a session for the caller's tenant and user."""
        caller = await callers.recognise(request)

        async def act(session_id: str) -> Response:
            user = caller.principal.require_user()
            await callers.tenant_of(caller)
            session = await sessions.create(
                SessionId(session_id),
                tenant=caller.tenant,
                user=user,
                metadata=check_metadata(body.metadata if body else {}),
            )
            location = {"Location": f"/v1/sessions/{session.session_id}"}
            return answer(_session_answer(session), status=HTTPStatus.CREATED, headers=location)

        return await idempotency.once(request, caller, "ses", act)

    @router.get("/v1/sessions", response_model=PageAnswer[SessionAnswer])
    async def list_sessions(request: Request, limit: int | None = None, cursor: str | None = None) -> Response:
        """List sessions, newest first."""
        caller = await callers.recognise(request)
        page = await sessions.page(caller.tenant, request_page(limit, cursor))
        items = [_session_answer(session) for session in page.items]
        return answer(PageAnswer[SessionAnswer](items=items, next_cursor=page.next_cursor))

    @router.get("/v1/sessions/{session_id}", response_model=SessionAnswer)
    async def get_session(request: Request, session_id: str) -> Response:
        """Return a session."""
        caller = await callers.recognise(request)
        return answer(_session_answer(await sessions.get(SessionId(session_id), caller.tenant)))

    @router.delete(
        "/v1/sessions/{session_id}",
        status_code=HTTPStatus.ACCEPTED,
        response_model=SessionAnswer,
        responses={HTTPStatus.NO_CONTENT: {"description": "everything is gone"}},
    )
    async def delete_session(request: Request, session_id: str) -> Response:
        """Delete a session: what runs is cancelled, and runs, steps, outputs, events and memories of it are removed.

        202 says that nothing begins in it any more and that the rest follows, whatever happens to this gateway;
        repeated, the call answers 204 once everything is gone. The id is never used again.
        """
        caller = await callers.recognise(request)
        session = await deleting.begin(SessionId(session_id), caller.tenant)
        if session is None or await _is_deleted_now(session):
            return Response(status_code=HTTPStatus.NO_CONTENT)
        return answer(_session_answer(session), status=HTTPStatus.ACCEPTED)

    async def _is_deleted_now(session: Session) -> bool:
        """Do a first part of the work; what fails now is done later."""
        try:
            part = await deleting.work_off(Doomed(session_id=session.session_id, tenant_id=session.tenant_id))
        except Unavailable:
            return False
        finally:
            wake()
        return part.is_last

    return router


def _session_answer(session: Session) -> SessionAnswer:
    return SessionAnswer(
        id=session.session_id,
        tenant_id=session.tenant_id,
        user_id=session.user_id,
        metadata=session.metadata,
        created_at=session.created_at,
        deleting_at=session.deleting_at,
    )
