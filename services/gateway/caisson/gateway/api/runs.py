"""`/v1/runs`."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.ids import RunId
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.cancels import Cancels
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.models import PageAnswer, RunAnswer, run_answer
from caisson.gateway.api.submissions import Submissions
from caisson.gateway.api.waiting import MAX_WAIT_S, Waiting
from caisson.gateway.domain.pages import request_page
from caisson.gateway.domain.plans import RunRequest
from caisson.gateway.domain.runs import Runs, RunStatus


def routes(
    callers: Callers,
    runs: Runs,
    submissions: Submissions,
    waiting: Waiting,
    cancels: Cancels,
    idempotency: Idempotency,
) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["runs"])

    @router.post("/v1/runs", status_code=202, response_model=RunAnswer)
    async def create_run(request: Request, body: RunRequest) -> Response:
        """Accept a run. Once answered, it is never lost."""
        caller = await callers.recognise(request)

        async def act(run_id: str) -> Response:
            run = await submissions.submit(caller, body, run_id)
            location = {"Location": f"/v1/runs/{run.run_id}"}
            return answer(run_answer(run), status=HTTPStatus.ACCEPTED, headers=location)

        return await idempotency.once(request, caller, "run", act)

    @router.get("/v1/runs", response_model=PageAnswer[RunAnswer])
    async def list_runs(
        request: Request,
        session_id: str | None = None,
        status: RunStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Response:
        """List runs without step output, newest first."""
        caller = await callers.recognise(request)
        page = await runs.page(caller.tenant, request_page(limit, cursor), session=session_id, status=status)
        items = [run_answer(run) for run in page.items]
        return answer(PageAnswer[RunAnswer](items=items, next_cursor=page.next_cursor))

    @router.get("/v1/runs/{run_id}", response_model=RunAnswer)
    async def get_run(
        request: Request, run_id: str, wait_s: Annotated[float | None, Query(ge=0, le=MAX_WAIT_S)] = None
    ) -> Response:
        """Return a run; with `wait_s`, once it is finished or the time is over."""
        caller = await callers.recognise(request)
        tenant, checked = caller.tenant, RunId(run_id)
        if wait_s:
            return answer(run_answer(await waiting.finished(checked, tenant, wait_s=wait_s)))
        return answer(run_answer(await runs.get(checked, tenant)))

    @router.post("/v1/runs/{run_id}/cancel", status_code=202, response_model=RunAnswer)
    async def cancel_run(request: Request, run_id: str) -> Response:
        """Cancel a run: final within two seconds, and never started again."""
        caller = await callers.recognise(request)
        checked = RunId(run_id)

        async def act(_: str) -> Response:
            await cancels.cancel(checked, caller.tenant, reason="cancelled by the caller")
            run = await runs.get(checked, caller.tenant)
            return answer(run_answer(run), status=HTTPStatus.ACCEPTED)

        return await idempotency.once(request, caller, "cxl", act, about=checked)

    return router
