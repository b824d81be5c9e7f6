"""Holding a tenant's index against the store on request."""

from collections.abc import Callable

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.memories import Reconcile, Reconciled
from caisson.memory.domain.housekeeping import Inventory, StoredPoints, reconcile
from caisson.memory.handlers.callers import principal_of


class ReconcilingHandlers:
    """Finds and mends what differs."""

    def __init__(self, inventory: Inventory, index: StoredPoints, *, wake: Callable[[], None]) -> None:
        self._inventory = inventory
        self._index = index
        self._wake = wake

    def register(self, bus: Bus) -> None:
        """Serve reconciliation on `bus`."""
        bus.serve(subjects.MEMORY_RECONCILE, Reconcile, self.reconcile)

    async def reconcile(self, request: Reconcile) -> Reconciled:
        """Compare the caller's tenant; what differs is the relay's next work when this answers."""
        drift = await reconcile(principal_of(request.caller).tenant, self._inventory, self._index)
        self._wake()
        return Reconciled(
            checked=drift.checked,
            missing=len(drift.missing),
            orphaned=len(drift.orphaned),
            stale=len(drift.stale),
        )
