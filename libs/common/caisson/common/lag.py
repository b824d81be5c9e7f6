"""How late the event loop wakes: whoever blocks it makes everybody wait.

Invariant: a block longer than two samples is seen whenever it happens, at most one sample too short.
"""

import asyncio
from time import monotonic

from caisson.common import metrics

SAMPLE_S = 0.02
_WINDOW_S = 60.0


class WorstLag:
    """The worst of this minute and of the one before, so that no scrape misses it."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._before = self._worst = 0.0

    def note(self, lag_s: float, now: float) -> float:
        """Take one sample; return the worst."""
        if now - self._began >= _WINDOW_S:
            self._began, self._before, self._worst = now, self._worst, 0.0
        self._worst = max(self._worst, lag_s)
        return max(self._before, self._worst)


async def measure_lag() -> None:
    """Sample for ever."""
    worst = WorstLag(monotonic())
    while True:
        before = monotonic()
        await asyncio.sleep(SAMPLE_S)
        now = monotonic()
        lag_s = max(0.0, now - before - SAMPLE_S)
        metrics.LOOP_LAG_SECONDS.observe(lag_s)
        metrics.LOOP_LAG_MAX_SECONDS.set(worst.note(lag_s, now))
