"""The ledger over the bus. Invariant: one call sends one request; who repeats it decides so elsewhere."""

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import Unavailable
from caisson.common.leases import (
    Claim,
    Done,
    FinishRun,
    FinishStep,
    Grants,
    Release,
    Renew,
    Renewed,
    StartStep,
)
from caisson.runner.domain.fitting import fit

_HEADROOM_BYTES = 4096


class BusLedger:
    """The domain's `Ledger`. A claim gets more time than the rest: what a late answer grants would idle a lease."""

    def __init__(self, bus: Bus, *, timeout_s: float = 2.0, claim_timeout_s: float = 5.0) -> None:
        self._bus = bus
        self._timeout_s = timeout_s
        self._claim_timeout_s = claim_timeout_s

    async def claim(self, request: Claim) -> Grants:
        """Ask for work, but only now: a claim sent after a reconnect would bring grants to nobody."""
        if not self._bus.connection.is_connected:
            raise Unavailable("NATS is not connected")
        return await self._bus.call(subjects.LEDGER_CLAIM, request, Grants, timeout_s=self._claim_timeout_s)

    async def renew(self, request: Renew) -> Renewed:
        """Renew leases."""
        return await self._bus.call(subjects.LEDGER_RENEW, request, Renewed, timeout_s=self._timeout_s)

    async def start_step(self, request: StartStep) -> Done:
        """Record that a step is about to run."""
        return await self._bus.call(subjects.LEDGER_START_STEP, request, Done, timeout_s=self._timeout_s)

    async def finish_step(self, request: FinishStep) -> Done:
        """Record a step's result; texts that do not fit into a message of this bus lose their middle."""
        fitting = fit(request, max_bytes=self._bus.connection.max_payload - _HEADROOM_BYTES)
        return await self._bus.call(subjects.LEDGER_FINISH_STEP, fitting, Done, timeout_s=self._timeout_s)

    async def finish_run(self, request: FinishRun) -> Done:
        """Record the run's end."""
        return await self._bus.call(subjects.LEDGER_FINISH_RUN, request, Done, timeout_s=self._timeout_s)

    async def release(self, request: Release) -> Done:
        """Give a run back."""
        return await self._bus.call(subjects.LEDGER_RELEASE, request, Done, timeout_s=self._timeout_s)
