"""Asking for work: on a doorbell, on a free slot, and by the clock.

Invariant: one claim is in flight, it asks for no more than the free slots, and none is sent while the host cannot
make a room or the worker drains.
"""

import asyncio
from collections.abc import Callable
from time import monotonic

import structlog

from caisson.common.errors import CaissonError, Unavailable
from caisson.common.health import Progress
from caisson.common.leases import Claim, Grant, Release
from caisson.runner.domain.ledger import Ledger
from caisson.runner.loops.holdings import HeldRun, Holdings
from caisson.runner.loops.host import HostWatch

log = structlog.get_logger(__name__)


class Claiming:
    """The loop. `begin` is called with each run that was granted."""

    def __init__(
        self,
        *,
        worker_id: str,
        poll_s: float,
        reserve: int,
        ledger: Ledger,
        holdings: Holdings,
        host: HostWatch,
        begin: Callable[[HeldRun], None],
        progress: Progress,
    ) -> None:
        self._worker_id = worker_id
        self._poll_s = poll_s
        self._reserve = reserve
        self._ledger = ledger
        self._holdings = holdings
        self._host = host
        self._begin = begin
        self._progress = progress
        self._bell = asyncio.Event()
        self._idle = asyncio.Lock()
        self._closed = False

    def ring(self) -> None:
        """There may be work: ask now."""
        self._bell.set()

    async def check(self) -> None:
        """Raise Unavailable while no work is asked for on purpose."""
        if self._closed:
            raise Unavailable("the worker drains: it takes no more runs")

    async def close(self) -> None:
        """Ask for nothing more. What a claim still in flight brings is given back."""
        self._closed = True
        self.ring()
        async with self._idle:
            log.info("claiming.closed")

    async def run(self) -> None:
        """Claim until closed."""
        while not self._closed:
            await self._wait()
            async with self._idle:
                await self._claim()

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._bell.wait(), self._poll_s)
        except TimeoutError:
            return
        finally:
            self._bell.clear()

    async def _claim(self) -> None:
        if self._closed or not self._host.able:
            return
        slots = self._holdings.free
        if not slots:
            self._progress.tick()
            return
        sent_at = monotonic()
        try:
            answer = await self._ledger.claim(
                Claim(worker_id=self._worker_id, slots=slots, reserve=min(self._reserve, slots))
            )
        except CaissonError as error:
            log.warning("claim.failed", code=error.code, detail=error.detail)
            return
        self._progress.tick()
        for grant in answer.grants:
            await self._take(grant, claimed_at=sent_at)

    async def _take(self, grant: Grant, *, claimed_at: float) -> None:
        held = HeldRun(grant, worker_id=self._worker_id, claimed_at=claimed_at)
        if not self._closed:
            self._begin(held)
            return
        try:
            await self._ledger.release(Release(holding=held.holding))
        except CaissonError as error:
            log.warning("release.failed", run=grant.run_id, code=error.code)
