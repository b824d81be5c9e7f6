"""Periodic work under a lease: one replica at a time does a pass, and another goes on when that one is gone."""

import asyncio
from contextlib import aclosing, suppress

import structlog
from prometheus_client import Counter, Gauge

from caisson.common.errors import LeaseLost
from caisson.common.health import Progress
from caisson.memory.domain.leasing import Lease, Leases, Pass, Work
from caisson.memory.loops.trouble import TROUBLE

PASSES = Counter("caisson_memory_passes_total", "Passes of periodic work that this replica ended", ["work"])
LOST = Counter("caisson_memory_leases_lost_total", "Passes that another replica took over", ["work"])
OVERDUE_SECONDS = Gauge(
    "caisson_memory_overdue_seconds",
    "For how long periodic work that is due has made no step, in any replica",
    ["work"],
)
POLL_S = 5.0
_GIVE_BACK_WITHIN_S = 2.0

log = structlog.get_logger(__name__)


class Leased:
    """Does a pass whenever one is due and nobody else does it. A replica that holds nothing is as healthy."""

    def __init__(self, work: Work, pass_: Pass, leases: Leases, *, every_s: float, progress: Progress) -> None:
        self._work = work
        self._pass = pass_
        self._leases = leases
        self._every_s = every_s
        self._progress = progress

    async def run(self) -> None:
        """Work for ever."""
        while True:
            try:
                await self.turn()
                OVERDUE_SECONDS.labels(work=self._work).set(await self._leases.overdue_s(self._work))
                self._progress.tick()
            except TROUBLE as error:
                log.warning("leased.interrupted", work=self._work, error=repr(error))
            await asyncio.sleep(min(POLL_S, self._every_s))

    async def turn(self) -> bool:
        """Do a pass if one is due and free; return whether this replica ended it."""
        lease = await self._leases.take(self._work)
        if lease is None:
            return False
        try:
            await self._finish(lease)
        except LeaseLost:
            LOST.labels(work=self._work).inc()
            log.warning("leased.lost", work=self._work, fence=lease.fence)
            return False
        except BaseException:
            await self._give_back(lease)
            raise
        PASSES.labels(work=self._work).inc()
        return True

    async def _finish(self, lease: Lease) -> None:
        state = lease.state
        async with aclosing(self._pass.steps(lease)) as steps:
            async for state in steps:
                await self._leases.keep(lease, state)
                self._progress.tick()
        await self._leases.finish(lease, state, again_in_s=self._every_s)

    async def _give_back(self, lease: Lease) -> None:
        """Spare the next replica the wait for the lease to lapse."""
        with suppress(*TROUBLE):
            async with asyncio.timeout(_GIVE_BACK_WITHIN_S):
                await self._leases.give_back(lease)
