"""Cancelling runs: the ledger first, then a wake for the worker, then force where the worker stays silent."""

import asyncio
from datetime import UTC, datetime

import structlog

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.ids import Ids, RunId, TenantId, new_id
from caisson.gateway.domain.leasing import Contexts, Leases
from caisson.gateway.domain.runs import Runs, RunStatus

_CONFIRM_S = 1.2

log = structlog.get_logger(__name__)


class Cancels:
    """Cancels runs so that every one is final within two seconds."""

    def __init__(self, runs: Runs, leases: Leases, contexts: Contexts, bus: Bus) -> None:
        self._runs = runs
        self._leases = leases
        self._contexts = contexts
        self._bus = bus
        self._enforcing: set[asyncio.Task[None]] = set()

    async def cancel(self, run_id: RunId, tenant: TenantId, *, reason: str) -> None:
        """Cancel a run; repeating it, or cancelling a finished one, changes nothing. Raises NotFound."""
        result = await self._runs.cancel(run_id, tenant, reason=reason)
        if result.after is RunStatus.RUNNING:
            await self._wake_worker(run_id, tenant)
            task = asyncio.create_task(self._enforce(run_id))
            self._enforcing.add(task)
            task.add_done_callback(self._enforcing.discard)

    async def _wake_worker(self, run_id: RunId, tenant: TenantId) -> None:
        envelope = Envelope(
            id=new_id("evt"),
            type="run.cancelling",
            tenant_id=tenant,
            run_id=run_id,
            occurred_at=datetime.now(UTC),
            data={},
        )
        subject = subjects.event("run.cancelling", Ids(tenant=tenant, run=run_id))
        await self._bus.publish_live(subject, envelope.model_dump_json().encode())

    async def _enforce(self, run_id: RunId) -> None:
        """End the run if its worker has not confirmed in time; the reconciler does the same if this process dies."""
        await asyncio.sleep(_CONFIRM_S)
        try:
            ended = await self._leases.enforce_cancel(run_id)
        except Exception as error:
            log.warning("cancel.not_enforced", run=run_id, error=repr(error))
            return
        if ended is not None:
            await self._contexts.revoke(ended)
