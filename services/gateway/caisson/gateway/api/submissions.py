"""Accepting a run: from a checked request to a stored one, for POST /v1/runs and POST /v1/exec alike."""

from collections.abc import Callable

from caisson.common import tracing
from caisson.common.contexts import Credential
from caisson.common.ids import RunId, SessionId
from caisson.gateway.api.callers import Caller, Callers
from caisson.gateway.domain.plans import Plan, RunRequest, plan
from caisson.gateway.domain.runs import NewRun, RunRecord, Runs, accepted
from caisson.gateway.domain.sessions import Sessions

Seal = Callable[[Credential], str]
"""Seals a credential for the proxy: after this nothing holds it in clear."""


class Submissions:
    """Accepts runs. When `submit` returns, the run survives the death of every process."""

    def __init__(self, callers: Callers, runs: Runs, sessions: Sessions, seal: Seal) -> None:
        self._callers = callers
        self._runs = runs
        self._sessions = sessions
        self._seal = seal

    async def submit(self, caller: Caller, request: RunRequest, run_id: str) -> RunRecord:
        """Store a run.

        Raises:
            InvalidInput: naming field and limit; nothing was stored.
            NotFound: the session is not the tenant's.
            SessionDeleting: nothing begins in the session any more.
        """
        user = caller.principal.require_user()
        tenant = await self._callers.tenant_of(caller)
        checked = plan(request, tenant=tenant)
        if request.session_id is not None:
            await self._sessions.get(SessionId(request.session_id), caller.tenant)
        run = NewRun(
            run_id=RunId(run_id),
            tenant_id=caller.tenant,
            user_id=user,
            session_id=SessionId(request.session_id) if request.session_id is not None else None,
            plan=checked,
            sealed=self._seal_all(checked, caller),
            traceparent=tracing.current(),
        )
        created_at = await self._runs.create(run)
        return await self._runs.get(run.run_id, caller.tenant) if created_at is None else accepted(run, created_at)

    def _seal_all(self, checked: Plan, caller: Caller) -> dict[str, str]:
        return {
            upstream: self._seal(Credential(tenant_id=caller.tenant, upstream=upstream, kind=kind, value=value))
            for upstream, (kind, value) in checked.credentials.items()
        }
