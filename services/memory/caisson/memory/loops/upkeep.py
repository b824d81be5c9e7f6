"""The passes of periodic work: sweep, reconcile; and each replica's own care for its engine."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import datetime

import structlog
from prometheus_client import Counter

from caisson.common.health import Progress
from caisson.common.ids import TenantId
from caisson.memory.domain.housekeeping import Housekeeping, Unused
from caisson.memory.domain.indexing import Index
from caisson.memory.domain.leasing import Lease, State
from caisson.memory.domain.reconciling import Drift, Reconciler
from caisson.memory.loops.trouble import TROUBLE

EXPIRED = Counter("caisson_memory_expired_total", "Memories that the sweep took after their end")
COOLED = Counter("caisson_memory_cooled_total", "Memories that went cold because they were long unused")
DRIFT = Counter("caisson_memory_drift_total", "Differences between store and index that were mended", ["kind"])

log = structlog.get_logger(__name__)


class SweepPass:
    """Tidies up: what expired goes, what is long unused goes cold, old records go."""

    def __init__(self, housekeeping: Housekeeping) -> None:
        self._housekeeping = housekeeping

    async def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        """Do one pass; the long unused are looked at a page a pass, in turn."""
        state = lease.state
        while expired := await self._housekeeping.drop_expired(lease):
            EXPIRED.inc(expired)
            yield state
        while await self._housekeeping.count_uses(lease):
            yield state
        cooled, following = await self._housekeeping.cool_unused(_unused(state), lease)
        COOLED.inc(cooled)
        yield {"unused": asdict(following) | {"used_at": following.used_at.isoformat()}}
        await self._housekeeping.drop_old_records(lease)


class ReconcilePass:
    """Holds index and store against each other: the store tenant by tenant, then all that the index has.

    One that is taken over goes on within the store where the other stopped; the index is read from its beginning.
    """

    def __init__(self, reconciler: Reconciler, *, wake: asyncio.Event) -> None:
        self._reconciler = reconciler
        self._wake = wake

    async def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        """Do one pass."""
        tenant: TenantId | None = None
        if not lease.state.get("store_is_done"):
            tenant, after = _place(lease.state)
            tenant = tenant or await self._reconciler.next_tenant("")
            while tenant is not None:
                async for last, drift in self._reconciler.tenant(tenant, after=after, lease=lease):
                    self._tell(drift, tenant)
                    yield {"tenant": tenant, "after": last}
                tenant, after = await self._reconciler.next_tenant(tenant), ""
        async for drift in self._reconciler.strangers(lease=lease):
            self._tell(drift, None)
            yield {"store_is_done": True}
        yield {}

    def _tell(self, drift: Drift, tenant: TenantId | None) -> None:
        for kind, found in drift.kinds.items():
            DRIFT.labels(kind=kind).inc(found)
            log.warning("reconcile.mended", tenant=tenant, kind=kind, memories=found)
        if drift.kinds:
            self._wake.set()


class Optimizing:
    """Each replica's own: lets its engine tidy up."""

    def __init__(self, index: Index, *, pause_s: float, progress: Progress) -> None:
        self._index = index
        self._pause_s = pause_s
        self._progress = progress

    async def run(self) -> None:
        """Tidy up for ever."""
        while True:
            try:
                await self._index.optimize()
                self._progress.tick()
            except TROUBLE as error:
                log.warning("optimizing.interrupted", error=repr(error))
            await asyncio.sleep(self._pause_s)


def _unused(state: State) -> Unused:
    saved = state.get("unused")
    if saved is None:
        return Unused()
    return Unused(**saved | {"used_at": datetime.fromisoformat(saved["used_at"])})


def _place(state: State) -> tuple[TenantId | None, str]:
    tenant = state.get("tenant")
    return (None if tenant is None else TenantId(tenant)), state.get("after", "")
