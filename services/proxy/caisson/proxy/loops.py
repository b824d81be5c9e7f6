"""Background work of the proxy: looking at the time, and following the contexts."""

import asyncio
from collections.abc import Callable, Collection
from time import monotonic
from typing import Protocol

from caisson.common.health import Progress

_SWEEP_S = 0.1


class Watched(Protocol):
    """What must end when it takes too long."""

    def check(self, now: float) -> None:
        """Look at the time."""


async def sweep(watched: Collection[Watched], reap: Callable[[], None], progress: Progress) -> None:
    """Look at every connection several times a second: time-outs, and runs that have ended meanwhile."""
    while True:
        await asyncio.sleep(_SWEEP_S)
        now = monotonic()
        for connection in tuple(watched):
            connection.check(now)
        reap()
        progress.tick()
