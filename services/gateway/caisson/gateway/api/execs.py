"""`/v1/exec`: one command, run to its end."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import Unavailable
from caisson.common.messages import Message
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.models import ExecAnswer, step_fields
from caisson.gateway.api.submissions import Submissions
from caisson.gateway.api.waiting import Waiting
from caisson.gateway.domain.limits import PartialLimits
from caisson.gateway.domain.plans import BashRequest, CredentialRequest, RunRequest, StepRequest


class ExecRequest(Message):
    """The body of POST /v1/exec: one command, run to its end."""

    command: str
    timeout_s: float | None = None
    session_id: str | None = None
    env: dict[str, str] = {}
    datasets: list[str] = []
    upstreams: dict[str, CredentialRequest] = {}
    limits: PartialLimits | None = None
    metadata: dict[str, object] = {}

    def as_run(self) -> RunRequest:
        """Return the one-step run that this is."""
        return RunRequest(
            session_id=self.session_id,
            steps=[StepRequest(bash=BashRequest(command=self.command, timeout_s=self.timeout_s))],
            env=self.env,
            datasets=self.datasets,
            upstreams=self.upstreams,
            limits=self.limits,
            metadata=self.metadata,
        )


def routes(callers: Callers, submissions: Submissions, waiting: Waiting, idempotency: Idempotency) -> APIRouter:
    """Return the route."""
    router = APIRouter(route_class=StrictRoute, tags=["runs"])

    @router.post("/v1/exec", response_model=ExecAnswer)
    async def execute(request: Request, body: ExecRequest) -> Response:
        """Run one command to its end."""
        caller = await callers.recognise(request)

        async def act(run_id: str) -> Response:
            accepted = await submissions.submit(caller, body.as_run(), run_id)
            run = await waiting.finished(accepted.run_id, caller.tenant, wait_s=None)
            if not run.status.is_final:
                raise Unavailable(f"the gateway is stopping; run {run.run_id} goes on and can be waited for")
            step = step_fields(run.steps[0])
            return answer(ExecAnswer(**step, run_id=run.run_id, run_status=run.status))

        return await idempotency.once(request, caller, "run", act)

    return router
