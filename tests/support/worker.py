"""A scripted worker: it speaks to the ledger as a runner does, and does only what a test tells it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.ids import Ids, RunId, SessionId, StepId, TenantId, UserId
from caisson.common.leases import (
    Claim,
    Done,
    FinishRun,
    FinishStep,
    Grant,
    Grants,
    Holding,
    OutputChunk,
    RecordSecurity,
    Release,
    Renew,
    Renewed,
    SecurityEvent,
    StartStep,
    Verdict,
)
from caisson.common.outcome import Exited, Outcome, Output
from caisson.common.settings import ServiceSettings
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually

_TIMEOUT_S = 5.0
SUCCESS = Exited(exit_code=0)


class Worker:
    """One worker on a connection that it may share with others."""

    def __init__(self, bus: Bus, name: str = "worker-1") -> None:
        self.bus = bus
        self.name = name

    def named(self, name: str) -> "Worker":
        """Return another worker on the same connection."""
        return Worker(self.bus, name)

    def holding(self, grant: Grant) -> Holding:
        """Return the lease of a grant, as this worker would write with it."""
        return Holding(worker_id=self.name, run_id=grant.run_id, fence=grant.fence)

    async def claim(self, slots: int = 1, *, reserve: int = 0) -> list[Grant]:
        """Ask for work once."""
        request = Claim(worker_id=self.name, slots=slots, reserve=reserve)
        return (await self.bus.call(subjects.LEDGER_CLAIM, request, Grants, timeout_s=_TIMEOUT_S)).grants

    async def take(self, *, within_s: float = 5) -> Grant:
        """Claim until there is a run, and return its grant."""

        async def claim() -> list[Grant]:
            return await self.claim()

        return (await eventually(claim, within_s=within_s))[0]

    async def renew(self, *grants: Grant) -> dict[str, Verdict]:
        """Send one heartbeat."""
        request = Renew(worker_id=self.name, leases=[self.holding(grant) for grant in grants])
        return (await self.bus.call(subjects.LEDGER_RENEW, request, Renewed, timeout_s=_TIMEOUT_S)).verdicts

    async def start(self, grant: Grant, place: int = 0) -> Verdict:
        """Report that a step runs; `place` counts the grant's steps."""
        request = StartStep(holding=self.holding(grant), step_id=grant.steps[place].step_id)
        return (await self.bus.call(subjects.LEDGER_START_STEP, request, Done, timeout_s=_TIMEOUT_S)).verdict

    async def finish(
        self,
        grant: Grant,
        place: int = 0,
        *,
        outcome: Outcome = SUCCESS,
        stdout: str = "",
        security: tuple[SecurityEvent, ...] = (),
        start_next: bool = False,
        finish_run: bool = False,
    ) -> Verdict:
        """Report a step's result, and what follows it."""
        request = FinishStep(
            holding=self.holding(grant),
            step_id=grant.steps[place].step_id,
            outcome=outcome,
            stdout=Output(text=stdout, bytes=len(stdout.encode())),
            stderr=Output(),
            duration_ms=1.5,
            security=list(security),
            start_next=grant.steps[place + 1].step_id if start_next else None,
            finish_run=finish_run,
        )
        return (await self.bus.call(subjects.LEDGER_FINISH_STEP, request, Done, timeout_s=_TIMEOUT_S)).verdict

    async def finish_run(self, grant: Grant) -> Verdict:
        """Report that nothing is left to do."""
        request = FinishRun(holding=self.holding(grant))
        return (await self.bus.call(subjects.LEDGER_FINISH_RUN, request, Done, timeout_s=_TIMEOUT_S)).verdict

    async def release(self, grant: Grant) -> None:
        """Give a run back."""
        request = Release(holding=self.holding(grant))
        await self.bus.call(subjects.LEDGER_RELEASE, request, Done, timeout_s=_TIMEOUT_S)

    async def record_security(self, *events: SecurityEvent) -> None:
        """Report as the proxy does."""
        request = RecordSecurity(events=list(events))
        await self.bus.call(subjects.LEDGER_RECORD_SECURITY, request, Done, timeout_s=_TIMEOUT_S)

    async def say(self, grant: Grant, text: str, *, place: int = 0, offset: int = 0) -> None:
        """Publish live output of a step."""
        step_id = grant.steps[place].step_id
        ids = Ids(
            tenant=TenantId(grant.tenant_id),
            user=UserId(grant.user_id),
            session=SessionId(grant.session_id) if grant.session_id else None,
            run=RunId(grant.run_id),
            step=StepId(step_id),
        )
        chunk = OutputChunk(step_id=step_id, stream="stdout", offset=offset, text=text)
        await self.bus.publish_live(subjects.step_output(ids), chunk.model_dump_json().encode())

    async def work(self, grant: Grant, *, stdout: str = "") -> None:
        """Carry a run of one step to its end."""
        await self.start(grant)
        await self.finish(grant, stdout=stdout, finish_run=True)


@asynccontextmanager
async def connected_worker(nats: EmbeddedNats, name: str = "worker-1") -> AsyncIterator[Worker]:
    """Connect a worker with the runner's rights."""
    settings = ServiceSettings(nats_url=nats.url, nats_user="runner", nats_password=nats.passwords["runner"])
    bus = Bus(settings, service="runner", on_closed=lambda: None)
    await bus.start()
    try:
        yield Worker(bus, name)
    finally:
        await bus.stop()
