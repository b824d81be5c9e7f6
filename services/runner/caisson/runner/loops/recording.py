"""Recording at the ledger: the same call again while its effect is unknown and the lease lives.

Invariant: a call that was refused as `lease_lost` is the worker's last word about that run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import assert_never

import structlog

from caisson.common import metrics
from caisson.common.errors import CaissonError
from caisson.common.leases import Done, Verdict
from caisson.runner.domain.retrying import Abandon, Retry, Stop, after_failure
from caisson.runner.loops.holdings import End, HeldRun

log = structlog.get_logger(__name__)


class LetGo(Exception):
    """The run is no longer this worker's to write about."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end = end


async def record(held: HeldRun, call: Callable[[], Awaitable[Done]], *, last: bool = False) -> None:
    """Make a call until the ledger has answered. `last` says that it ends the run.

    Raises:
        LetGo: the lease is gone, or the ledger will not take the write.
    """
    held.finishing = last
    done = await _answered(held, call)
    if done.verdict is Verdict.CANCEL:
        held.cancelling.set()
    elif done.verdict is Verdict.LOST and not last:
        raise _lost(held)


async def _answered(held: HeldRun, call: Callable[[], Awaitable[Done]]) -> Done:
    failures = 0
    while True:
        try:
            return await call()
        except CaissonError as error:
            failures += 1
            decision = after_failure(error, failures=failures)
            log.warning("ledger.call_failed", code=error.code, detail=error.detail, failures=failures)
        match decision:
            case Retry(after_s=pause_s):
                await asyncio.sleep(pause_s)
            case Stop(stale=stale):
                raise _lost(held) if stale else LetGo(End.LOST)
            case Abandon(reason=reason):
                log.error("run.abandoned", reason=reason)
                raise LetGo(End.ABANDONED)
            case _:
                assert_never(decision)


def _lost(held: HeldRun) -> LetGo:
    metrics.STALE_FENCE.inc()
    log.warning("run.lease_lost", fence=held.grant.fence)
    return LetGo(End.LOST)
