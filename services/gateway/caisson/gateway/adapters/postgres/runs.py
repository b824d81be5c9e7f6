"""Runs in the ledger, as the API reads and makes them."""

from datetime import datetime
from typing import Any

from caisson.common.errors import NotFound
from caisson.common.ids import RunId, TenantId
from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.gateway.adapters.postgres.rows import run_of
from caisson.gateway.domain.pages import Page, PageRequest, paginate
from caisson.gateway.domain.runs import MAX_EVENTS, CancelResult, EventRecord, NewRun, RunRecord, RunStatus
from caisson.gateway.domain.sessions import SessionDeleting


class PostgresRuns:
    """The domain's `Runs`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def create(self, run: NewRun) -> datetime | None:
        """Store run, steps and `run.queued` at once and return when; None where the run id existed already.

        Raises:
            SessionDeleting: nothing begins in its session any more.
        """
        plan = {
            "env": run.plan.env,
            "datasets": list(run.plan.datasets),
            "sealed": run.sealed,
            "limits": run.plan.limits.model_dump(),
            "on_failure": run.plan.on_failure,
            "on_lost": run.plan.on_lost,
        }
        async with acquire(self._pool) as connection:
            row = await self._sql.create_run(
                connection,
                run=run.run_id,
                tenant=run.tenant_id,
                user=run.user_id,
                session=run.session_id,
                plan=plan,
                timeout_s=float(run.plan.limits.timeout_s),
                metadata=run.plan.metadata,
                traceparent=run.traceparent,
                step_ids=[step.step_id for step in run.plan.steps],
                commands=[step.command for step in run.plan.steps],
                timeouts=[float(step.timeout_s) for step in run.plan.steps],
            )
        if not row["is_open"]:
            raise SessionDeleting("the session is being deleted; no run begins in it")
        created_at: datetime | None = row["created_at"]
        return created_at

    async def get(self, run_id: RunId, tenant: TenantId) -> RunRecord:
        """Return a run of the tenant, or raise NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.get_run(connection, run=run_id, tenant=tenant)
        if row is None:
            raise NotFound("no such run")
        return run_of(row)

    async def page(
        self, tenant: TenantId, request: PageRequest, *, session: str | None, status: RunStatus | None
    ) -> Page[RunRecord]:
        """Return runs without step output, newest first."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.list_runs(
                    connection,
                    tenant=tenant,
                    session=session,
                    status=status,
                    before=request.before,
                    limit=request.limit + 1,
                )
            )
        return paginate([run_of(row) for row in rows], [row["run_id"] for row in rows], request)

    async def events(self, run_id: RunId, *, after: int) -> list[EventRecord]:
        """Return up to `MAX_EVENTS` events that follow number `after`; raise NotFound once the run is gone."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.get_events(connection, run=run_id, after=after, limit=MAX_EVENTS))
        if not rows:
            raise NotFound("no such run")
        return [
            EventRecord(seq=row["seq"], type=row["type"], data=row["data"], occurred_at=row["occurred_at"])
            for row in rows
            if row["seq"] is not None
        ]

    async def cancel(self, run_id: RunId, tenant: TenantId, *, reason: str) -> CancelResult:
        """End a queued run, mark a running one; raise NotFound for another tenant's."""
        async with acquire(self._pool) as connection:
            row = await self._sql.request_cancel(connection, run=run_id, tenant=tenant, reason=reason)
        if row is None:
            raise NotFound("no such run")
        return CancelResult(before=RunStatus(row["before"]), after=RunStatus(row["after"]))
