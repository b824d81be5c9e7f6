"""NATS in: what workers and the proxy ask of the ledger (`caisson.rpc.ledger.*`)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic

import structlog

from caisson.common import metrics, subjects
from caisson.common.bus import Bus
from caisson.common.errors import LateResult, LeaseLost, Unavailable
from caisson.common.ids import new_id
from caisson.common.leases import (
    Claim,
    Done,
    FinishRun,
    FinishStep,
    Grant,
    Grants,
    Holding,
    RecordSecurity,
    Release,
    Renew,
    Renewed,
    SecurityEvent,
    SecurityKind,
    StartStep,
)
from caisson.gateway.domain.leasing import Contexts, Granted, Leases, Recorded, SecurityReports

_NOTHING_VALID_S = 1.0
_CLAIM_BYTES = 1 << 20  # one more grant may follow: with a plan of 4 MiB the reply still fits the bus's 8 MB

log = structlog.get_logger(__name__)


class LedgerHandlers:
    """Answers workers. A grant leaves only after the proxy's context was confirmed."""

    def __init__(
        self, leases: Leases, contexts: Contexts, reports: SecurityReports, *, claim_changes: Callable[[], int]
    ) -> None:
        self._leases = leases
        self._contexts = contexts
        self._reports = reports
        self._claim_changes = claim_changes
        self._claiming = asyncio.Lock()
        self._nothing_since: tuple[int, float] | None = None
        self._background: set[asyncio.Task[None]] = set()

    def register(self, bus: Bus) -> None:
        """Serve every subject of the ledger on `bus`."""
        bus.serve(subjects.LEDGER_CLAIM, Claim, self.claim)
        bus.serve(subjects.LEDGER_RENEW, Renew, self.renew)
        bus.serve(subjects.LEDGER_START_STEP, StartStep, self.start_step)
        bus.serve(subjects.LEDGER_FINISH_STEP, FinishStep, self.finish_step)
        bus.serve(subjects.LEDGER_FINISH_RUN, FinishRun, self.finish_run)
        bus.serve(subjects.LEDGER_RELEASE, Release, self.release)
        bus.serve(subjects.LEDGER_RECORD_SECURITY, RecordSecurity, self.record_security)

    async def claim(self, claim: Claim) -> Grants:
        """Grant up to `slots` runs, the last `reserve` of them only to tenants without a live lease.

        Raises:
            Unavailable: the first grant's context was not confirmed. After a later one, what was granted is returned.
        """
        async with self._claiming:
            granted = await self._grant(claim)
        announced = await asyncio.gather(*(self._announce(one, claim.worker_id) for one in granted))
        grants = [grant for grant in announced if grant is not None]
        if granted and not grants:
            raise Unavailable("the contexts of what was granted could not be confirmed")
        return Grants(grants=grants)

    async def _grant(self, claim: Claim) -> list[Granted]:
        """Grant what there is. A doorbell rings at every runner: those that come when the last claim found nothing
        more, and nothing has changed since, cost no statement."""
        changes, now = self._claim_changes(), monotonic()
        if self._nothing_since is not None:
            seen, at = self._nothing_since
            if seen == changes and now - at < _NOTHING_VALID_S:
                return []
        granted: list[Granted] = []
        size_bytes = 0
        while len(granted) < claim.slots and size_bytes < _CLAIM_BYTES:
            newcomers = len(granted) >= claim.slots - claim.reserve
            one = await self._leases.grant_next(claim, newcomers=newcomers)
            if one is not None:
                granted.append(one)
                size_bytes += one.grant.size_bytes
            if one is None or not one.more_queued:
                self._nothing_since = None if newcomers and one is None else (changes, now)
                break
        return granted

    async def _announce(self, granted: Granted, worker_id: str) -> Grant | None:
        """Make the context known and return the grant; one that cannot have a context goes back at once."""
        grant = granted.grant
        try:
            await self._contexts.put(granted.context)
        except Unavailable as error:
            log.warning("context.unconfirmed", run=grant.run_id, reason=error.detail)
            with suppress(LeaseLost):
                await self._leases.release(Holding(worker_id=worker_id, run_id=grant.run_id, fence=grant.fence))
            return None
        return grant

    async def renew(self, renewal: Renew) -> Renewed:
        """Renew leases, and with each the proxy's context."""
        verdicts, contexts = await self._leases.renew(renewal)
        results = await asyncio.gather(*map(self._contexts.put, contexts), return_exceptions=True)
        for result in results:
            if isinstance(result, Unavailable):
                log.warning("context.renew_failed", reason=result.detail)
            elif isinstance(result, BaseException):
                raise result
        return Renewed(verdicts=verdicts)

    async def start_step(self, request: StartStep) -> Done:
        """Record that a step runs."""
        async with self._watching(request.holding):
            return self._done(await self._leases.start_step(request.holding, request.step_id))

    async def finish_step(self, result: FinishStep) -> Done:
        """Record a step's result and what follows it."""
        async with self._watching(result.holding):
            return self._done(await self._leases.finish_step(result))

    async def finish_run(self, request: FinishRun) -> Done:
        """End a run that has nothing left to do."""
        async with self._watching(request.holding):
            return self._done(await self._leases.finish_run(request.holding))

    async def release(self, request: Release) -> Done:
        """Take a run back from a draining worker."""
        async with self._watching(request.holding):
            self._revoke(await self._leases.release(request.holding))
        return Done()

    async def record_security(self, report: RecordSecurity) -> Done:
        """Record what the proxy denied or rewrote."""
        for event in report.events:
            await self._reports.record(event)
        return Done()

    def _done(self, recorded: Recorded) -> Done:
        self._revoke(recorded.ended_context)
        return Done(verdict=recorded.verdict)

    def _revoke(self, request_id: str | None) -> None:
        if request_id is not None:
            task = asyncio.create_task(self._contexts.revoke(request_id))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    @asynccontextmanager
    async def _watching(self, holding: Holding) -> AsyncIterator[None]:
        """Count and record a worker's write that came without its lease; a late result is no such thing."""
        try:
            yield
        except LateResult:
            raise
        except LeaseLost as error:
            metrics.STALE_FENCE.inc()
            await self._reports.record(
                SecurityEvent(
                    id=new_id("sec"),
                    kind=SecurityKind.STALE_FENCE,
                    run_id=holding.run_id,
                    reason=error.detail,
                    detail={"worker": holding.worker_id, "fence": holding.fence},
                )
            )
            raise
