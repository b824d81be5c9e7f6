"""`GET /v1/runs/{id}/events`: durable events from the ledger, live output from the bus, as one SSE stream.

Invariant: a reader's place is an event of this run that is still there, or it is refused.
"""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import CaissonError, InvalidInput
from caisson.common.ids import Ids, RunId, SessionId, TenantId, UserId
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.event_stream import EventStream
from caisson.gateway.domain.runs import RunRecord, Runs, Wakes

_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


class Gone(CaissonError):
    """The events that were asked for are beyond retention."""

    code = "gone"


def routes(callers: Callers, runs: Runs, wakes: Wakes, bus: Bus, stopping: asyncio.Event) -> APIRouter:
    """Return the route."""
    router = APIRouter(route_class=StrictRoute, tags=["runs"])

    @router.get("/v1/runs/{run_id}/events", response_class=StreamingResponse)
    async def stream_events(request: Request, run_id: str) -> Response:
        """Stream a run's events from the start, or after `Last-Event-ID`, until it has finished.

        204 says that nothing will ever follow: a browser's reader then stops connecting again.
        """
        caller = await callers.recognise(request)
        run = await runs.get(RunId(run_id), caller.tenant)
        after = _last_event_id(request.headers.get("last-event-id"))
        if await _is_at_the_end(runs, run, after):
            return Response(status_code=HTTPStatus.NO_CONTENT)
        return StreamingResponse(_stream(run, after), media_type="text/event-stream; charset=utf-8", headers=_HEADERS)

    async def _stream(run: RunRecord, after: int) -> AsyncIterator[bytes]:
        async with wakes.subscribe(run.run_id) as news:
            stream = EventStream(runs, news, stopping, run.run_id, after)
            output = await bus.listen(subjects.run_output_pattern(_ids(run)), stream.receive)
            try:
                yield b": caisson\n\n"
                async for frame in stream.frames():
                    yield frame
            finally:
                await output.unsubscribe()

    return router


async def _is_at_the_end(runs: Runs, run: RunRecord, after: int) -> bool:
    """Hold a reader's place against the run's events, and return whether none can follow it."""
    first = max(after, 1)
    found = await runs.events(run.run_id, after=first - 1)
    if after and not found and await runs.events(run.run_id, after=0):
        raise InvalidInput("must be the id of an event of this run", field="Last-Event-ID")
    if not found or found[0].seq != first:
        raise Gone(f"events after {after} are beyond retention; the run itself is at /v1/runs/{run.run_id}")
    return run.status.is_final and found[-1].seq == after


def _last_event_id(value: str | None) -> int:
    if not value:
        return 0
    if not value.isascii() or not value.isdigit() or len(value) > 9:  # noqa: PLR2004 - a sequence number is an int4
        raise InvalidInput("must be the id of an event of this run", field="Last-Event-ID")
    return int(value)


def _ids(run: RunRecord) -> Ids:
    return Ids(
        tenant=TenantId(run.tenant_id),
        user=UserId(run.user_id),
        session=SessionId(run.session_id) if run.session_id else None,
        run=run.run_id,
    )
