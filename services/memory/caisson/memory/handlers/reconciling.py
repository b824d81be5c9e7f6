"""Holding a tenant's index against the store on request."""

from collections.abc import Callable

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.memory_upkeep import Reconcile, Reconciled
from caisson.memory.domain.reconciling import Drift, Reconciler
from caisson.memory.handlers.callers import principal_of


class ReconcilingHandlers:
    """Finds and mends what differs."""

    def __init__(self, reconciler: Reconciler, *, wake: Callable[[], None]) -> None:
        self._reconciler = reconciler
        self._wake = wake

    def register(self, bus: Bus) -> None:
        """Serve reconciliation on `bus`."""
        bus.serve(subjects.MEMORY_RECONCILE, Reconcile, self.reconcile)

    async def reconcile(self, request: Reconcile) -> Reconciled:
        """Compare the caller's tenant; what differs is the relay's next work when this answers."""
        tenant = principal_of(request.caller).tenant
        drift = Drift()
        async for _, found in self._reconciler.tenant(tenant):
            drift.add(found)
        async for found in self._reconciler.strangers(tenant):
            drift.add(found)
        self._wake()
        return Reconciled(
            checked=drift.checked,
            missing=drift.kinds["missing"],
            orphaned=drift.kinds["orphaned"],
            stale=drift.kinds["stale"],
        )
