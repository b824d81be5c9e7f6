"""Renewing leases: one batched request per interval, whatever the steps do.

Invariant: only a renewal that was answered counts, from when it was sent.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic

import structlog

from caisson.common.errors import CaissonError
from caisson.common.health import Progress
from caisson.common.leases import Renew
from caisson.runner import metrics
from caisson.runner.domain.leases import verdict_on
from caisson.runner.domain.ledger import Ledger
from caisson.runner.loops.holdings import HeldRun, Holdings

_RETRIES_PER_INTERVAL = 6

log = structlog.get_logger(__name__)


class Heartbeat:
    """The loop. `wake` renews one run at once: that is how a cancel is heard early."""

    def __init__(
        self, *, worker_id: str, interval_s: float, ledger: Ledger, holdings: Holdings, progress: Progress
    ) -> None:
        self._worker_id = worker_id
        self._interval_s = interval_s
        self._ledger = ledger
        self._holdings = holdings
        self._progress = progress
        self._woken: set[str] = set()
        self._bell = asyncio.Event()

    def wake(self, run_id: str) -> None:
        """Renew this run now, if it is held."""
        if self._holdings.find(run_id):
            self._woken.add(run_id)
            self._bell.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        due_at = monotonic()
        while True:
            await self._pause(due_at - monotonic())
            if monotonic() < due_at:
                await self._beat([held for run_id in self._take_woken() for held in self._holdings.find(run_id)])
                continue
            self._take_woken()
            due_at = monotonic() + self._interval_s
            if await self._beat(list(self._holdings)):
                self._progress.tick()
            else:
                due_at = monotonic() + self._interval_s / _RETRIES_PER_INTERVAL

    async def _beat(self, runs: Sequence[HeldRun]) -> bool:
        """Renew; say whether the ledger answered."""
        runs = [held for held in runs if held.end is None]
        if not runs:
            return True
        sent_at = monotonic()
        request = Renew(worker_id=self._worker_id, leases=[held.holding for held in runs])
        try:
            answer = await self._ledger.renew(request)
        except CaissonError as error:
            metrics.RENEWAL_FAILURES.inc()
            log.warning("lease.renewal_failed", code=error.code, leases=len(runs))
            return False
        for held in runs:
            held.hear(verdict_on(held.grant.run_id, answer.verdicts), sent_at=sent_at)
        return True

    def _take_woken(self) -> set[str]:
        woken, self._woken = self._woken, set()
        self._bell.clear()
        return woken

    async def _pause(self, pause_s: float) -> None:
        if pause_s > 0 and not self._bell.is_set():
            try:
                await asyncio.wait_for(self._bell.wait(), pause_s)
            except TimeoutError:
                return
