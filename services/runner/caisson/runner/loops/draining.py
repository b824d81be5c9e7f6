"""Leaving in order: finish what can be finished in time, give the rest back.

Invariant: a run is given back only after everything that it started here is dead.
"""

import asyncio

import structlog

from caisson.common.errors import CaissonError
from caisson.common.leases import Release
from caisson.runner.domain.ledger import Ledger
from caisson.runner.loops.claiming import Claiming
from caisson.runner.loops.holdings import End, HeldRun, Holdings

_CLEAR_UP_S = 10.0

log = structlog.get_logger(__name__)


async def drain(*, claiming: Claiming, holdings: Holdings, ledger: Ledger, within_s: float) -> None:
    """Claim nothing more, wait up to `within_s` for the runs that are held, then kill and release the others."""
    await claiming.close()
    if await holdings.wait_empty(within_s):
        return
    unfinished = [held for held in holdings if held.end is None]
    for held in unfinished:
        held.let_go(End.RELEASED)
    if not await holdings.wait_empty(_CLEAR_UP_S):
        log.error("drain.not_cleared_up", runs=[held.grant.run_id for held in holdings])
    stuck = set(map(id, holdings))
    await asyncio.gather(
        *(_release(ledger, held) for held in unfinished if held.end is End.RELEASED and id(held) not in stuck)
    )


async def _release(ledger: Ledger, held: HeldRun) -> None:
    try:
        await ledger.release(Release(holding=held.holding))
    except CaissonError as error:
        log.warning("release.failed", run=held.grant.run_id, code=error.code)
