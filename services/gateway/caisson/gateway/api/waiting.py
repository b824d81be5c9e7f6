"""Waiting for a run to finish: woken by news, and by a poll where news was lost."""

import asyncio

from caisson.common.ids import RunId, TenantId
from caisson.gateway.domain.runs import RunRecord, Runs, Wakes

MAX_WAIT_S = 60.0
_POLL_S = 1.0


class Waiting:
    """Waits for runs to finish."""

    def __init__(self, runs: Runs, wakes: Wakes, stopping: asyncio.Event) -> None:
        self._runs = runs
        self._wakes = wakes
        self._stopping = stopping

    async def finished(self, run_id: RunId, tenant: TenantId, *, wait_s: float | None) -> RunRecord:
        """Return the run once it is final, or as it stands after `wait_s` (never, for None) or when we stop."""
        loop = asyncio.get_running_loop()
        deadline = None if wait_s is None else loop.time() + wait_s
        async with self._wakes.subscribe(run_id, finished_only=True) as news:
            while True:
                run = await self._runs.get(run_id, tenant)
                left_s = _POLL_S if deadline is None else min(_POLL_S, deadline - loop.time())
                if run.status.is_final or left_s <= 0 or self._stopping.is_set():
                    return run
                await news.next(timeout_s=left_s)
