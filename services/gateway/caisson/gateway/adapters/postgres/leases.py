"""Leases in the ledger: every write of a worker is conditional on worker, run, fence and a live lease."""

import secrets
from typing import Any

from caisson.common.contexts import RunContext
from caisson.common.errors import LateResult, LeaseLost
from caisson.common.ids import TenantId
from caisson.common.leases import BashStep, Claim, FinishStep, Grant, Holding, Renew, Verdict
from caisson.common.messages import Message
from caisson.common.outcome import status_of
from caisson.common.postgres import Connection, Pool, acquire, fetch_all, transaction
from caisson.gateway.adapters.postgres.rows import Row, context_of, limits_of
from caisson.gateway.domain.leasing import Granted, Recorded, step_error, told_events
from caisson.gateway.domain.recovery import End, Interrupted, Requeue, decide
from caisson.gateway.domain.runs import RunStatus

_REQUEST_ID_BYTES = 24
_CONFIRM_GRACE_S = 1.5
_RECOVERY_BATCH = 100
_CHOICES = 8


class PostgresLeases:
    """The domain's `Leases`."""

    def __init__(self, pool: Pool, queries: Any, *, lease_s: float) -> None:
        self._pool = pool
        self._sql = queries
        self._lease_s = lease_s

    async def grant_next(self, claim: Claim, *, newcomers: bool) -> Granted | None:
        """Grant the fairest tenant's oldest run, or nothing; with `newcomers`, only to a tenant without a lease.

        Where another claim took that tenant's last run or slot meanwhile, the choice is made again.
        """
        for _ in range(_CHOICES):
            async with transaction(self._pool) as connection:
                tenant = await self._sql.lock_fairest_tenant(connection, newcomers=newcomers)
                if tenant is None:
                    return None
                row = await self._sql.grant_run(
                    connection,
                    tenant=tenant["tenant_id"],
                    newcomers=newcomers,
                    worker=claim.worker_id,
                    lease_s=self._lease_s,
                    request_id=f"req_{secrets.token_urlsafe(_REQUEST_ID_BYTES)}",
                )
            if row is not None:
                return self._granted(row)
        return None

    async def renew(self, renewal: Renew) -> tuple[dict[str, Verdict], list[RunContext]]:
        """Renew what still holds; return each run's verdict and the contexts to renew with them."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.renew_leases(
                    connection,
                    worker=renewal.worker_id,
                    lease_s=self._lease_s,
                    runs=[lease.run_id for lease in renewal.leases],
                    fences=[lease.fence for lease in renewal.leases],
                )
            )
        verdicts = {lease.run_id: Verdict.LOST for lease in renewal.leases}
        verdicts |= {row["run_id"]: _verdict(row) for row in rows}
        return verdicts, [context_of(row, lease_s=self._lease_s) for row in rows]

    async def contexts_of(self, tenant: TenantId) -> list[RunContext]:
        """Return the contexts of a tenant's live leases, with its credentials as they are now."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.live_leases_of_tenant(connection, tenant=tenant))
        return [context_of(row, lease_s=self._lease_s) for row in rows]

    async def start_step(self, holding: Holding, step_id: str) -> Recorded:
        """Record that a step runs; raise LeaseLost when the lease is gone."""
        async with acquire(self._pool) as connection:
            row = await self._sql.start_step(connection, **_key(holding), step=step_id)
            if row is None:
                return await self._repeated(connection, holding, step_id, finished=False)
        return Recorded(verdict=_verdict(row))

    async def finish_step(self, result: FinishStep) -> Recorded:
        """Record a result and what follows it; raise LeaseLost when the lease is gone."""
        told = told_events(result)
        async with acquire(self._pool) as connection:
            row = await self._sql.finish_step(
                connection,
                **_key(result.holding),
                step=result.step_id,
                status=status_of(result.outcome),
                outcome=_plain(result.outcome),
                stdout=_plain(result.stdout),
                stderr=_plain(result.stderr),
                duration_ms=float(result.duration_ms),
                start_next=result.start_next,
                finish_run=result.finish_run,
                error=step_error(result.outcome, step_id=result.step_id),
                types=[event.type for event in told],
                step_ids=[event.step_id for event in told],
                datas=[event.data for event in told],
                security=[{**_plain(event), "event_id": event.id} for event in result.security],
            )
            if row is None:
                return await self._repeated(connection, result.holding, result.step_id, late=result)
        return Recorded(verdict=_verdict(row), ended_context=row["request_id"] if result.finish_run else None)

    async def finish_run(self, holding: Holding) -> Recorded:
        """End a run that has nothing left to do; raise LeaseLost when the lease is gone."""
        async with acquire(self._pool) as connection:
            row = await self._sql.finish_run(connection, **_key(holding))
            if row is None:
                return await self._repeated(connection, holding, None)
        return Recorded(verdict=Verdict.CONTINUE, ended_context=row["request_id"])

    async def release(self, holding: Holding) -> str | None:
        """Give a run back; return the context that must go, or raise LeaseLost."""
        async with transaction(self._pool) as connection:
            if await self._sql.lock_held_run(connection, **_key(holding)) is None:
                raise _lost(await self._describe(connection, holding, None), holding)
            return await self._recover(connection, holding.run_id, released=True)

    async def recover_interrupted(self) -> list[str]:
        """Decide every run whose worker is gone or silent; return the contexts that must go."""
        async with transaction(self._pool) as connection:
            rows = await fetch_all(
                self._sql.lock_expired_runs(connection, grace_s=_CONFIRM_GRACE_S, limit=_RECOVERY_BATCH)
            )
            ended = [await self._recover(connection, row["run_id"], released=False) for row in rows]
        return [context for context in ended if context]

    async def enforce_cancel(self, run_id: str) -> str | None:
        """End a run whose worker has not confirmed the cancel; return the context that must go."""
        async with transaction(self._pool) as connection:
            if await self._sql.lock_unconfirmed_cancel(connection, run=run_id) is None:
                return None
            return await self._recover(connection, run_id, released=False)

    async def _recover(self, connection: Connection, run_id: str, *, released: bool) -> str | None:
        row = await self._sql.interrupted_run(connection, run=run_id)
        match decide(_interrupted(row, released=released)):
            case Requeue() as requeue:
                await self._sql.requeue_run(
                    connection,
                    run=run_id,
                    attempts=requeue.attempts,
                    reason=requeue.reason,
                    workspace_lost=requeue.workspace_lost,
                )
            case End() as end:
                await self._sql.end_run(
                    connection,
                    run=run_id,
                    status=end.status,
                    error={"code": end.code, "detail": end.detail},
                    step_status=status_of(end.outcome),
                    step_outcome=_plain(end.outcome),
                )
        return str(row["request_id"])

    async def _repeated(
        self,
        connection: Connection,
        holding: Holding,
        step_id: str | None,
        *,
        finished: bool = True,
        late: FinishStep | None = None,
    ) -> Recorded:
        """Tell a repeated write that took effect from a stale one."""
        row = await self._describe(connection, holding, step_id)
        if row is None or row["fence"] != holding.fence:
            raise _lost(row, holding)
        is_final = RunStatus(row["status"]).is_final
        if not (is_final or row["is_held"]):
            raise _lost(row, holding)
        if _took_effect(row, step_id, finished=finished):
            return Recorded(verdict=_verdict(row), ended_context=row["request_id"] if is_final else None)
        if late is None or not is_final:
            raise _lost(row, holding)
        await self._sql.keep_late_result(
            connection, run=holding.run_id, step=late.step_id, fence=holding.fence, outcome=_plain(late.outcome)
        )
        raise LateResult(f"the run is {row['status']}; the result is kept and changes nothing")

    async def _describe(self, connection: Connection, holding: Holding, step_id: str | None) -> Row | None:
        row: Row | None = await self._sql.describe_holding(
            connection, run=holding.run_id, worker=holding.worker_id, step=step_id
        )
        return row

    def _granted(self, row: Row) -> Granted:
        plan = row["plan"]
        grant = Grant(
            tenant_id=row["tenant_id"],
            user_id=row["user_id"],
            session_id=row["session_id"],
            run_id=row["run_id"],
            fence=row["fence"],
            attempt=row["attempt"],
            lease_s=self._lease_s,
            uid=row["uid"],
            request_id=row["request_id"],
            limits=limits_of(plan),
            remaining_s=row["remaining_s"],
            env=plan["env"],
            datasets=plan["datasets"],
            on_failure=plan["on_failure"],
            steps=[BashStep.model_validate(step) for step in row["steps"]],
            resumed_after=row["recorded"],
            workspace_lost=row["fence"] > 1 and row["recorded"] > 0,
            traceparent=row["traceparent"],
        )
        return Granted(grant=grant, context=context_of(row, lease_s=self._lease_s), more_queued=row["more_queued"])


def _lost(row: Row | None, holding: Holding) -> LeaseLost:
    if row is None:
        return LeaseLost(f"the lease with fence {holding.fence} is gone: there is no such run")
    return LeaseLost(
        f"the lease with fence {holding.fence} is gone: the run is {row['status']} with fence {row['fence']}"
    )


def _key(holding: Holding) -> dict[str, Any]:
    return {"worker": holding.worker_id, "run": holding.run_id, "fence": holding.fence}


def _verdict(row: Row) -> Verdict:
    return Verdict.CANCEL if row["cancelling"] else Verdict.CONTINUE


def _plain(message: Message) -> dict[str, Any]:
    return message.model_dump(mode="json")


def _took_effect(row: Row, step_id: str | None, *, finished: bool) -> bool:
    if step_id is None:
        return RunStatus(row["status"]).is_final
    if row["step_fence"] != row["fence"]:
        return False
    return row["step_status"] not in {"pending", "running"} if finished else row["step_status"] == "running"


def _interrupted(row: Row, *, released: bool) -> Interrupted:
    return Interrupted(
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        on_lost=row["on_lost"],
        step_running=row["step_running"],
        has_results=row["has_results"],
        cancelling=row["cancelling"],
        cancel_reason=row["cancel_reason"],
        overdue=row["overdue"],
        timeout_s=row["timeout_s"],
        released=released,
    )
