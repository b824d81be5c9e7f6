"""A ledger that answers workers from a script, on a real bus, and remembers what it was asked."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import CaissonError
from caisson.common.ids import Ids, RunId, TenantId, UserId, new_id
from caisson.common.leases import (
    BashStep,
    Claim,
    Done,
    FinishRun,
    FinishStep,
    Grant,
    Grants,
    Limits,
    Release,
    Renew,
    Renewed,
    StartStep,
    Verdict,
)
from caisson.common.messages import Message
from caisson.common.outcome import Outcome
from caisson.common.settings import ServiceSettings


class Silence:
    """Scripted instead of an answer: the request is taken, and no reply comes."""


SILENCE: Final = Silence()
Scripted = Message | CaissonError | Silence


def grant(*commands: str, **changes: object) -> Grant:
    """Build a grant of the given commands; `changes` replace single fields."""
    run_id = new_id("run")
    plain = Grant(
        tenant_id="acme",
        user_id="u-1",
        session_id=None,
        run_id=run_id,
        fence=1,
        attempt=1,
        lease_s=15,
        uid=10_000,
        request_id=f"req_{run_id}",
        limits=Limits(),
        remaining_s=600,
        env={},
        datasets=[],
        on_failure="stop",
        steps=[
            BashStep(step_id=f"{run_id}.{index}", index=index, command=command, timeout_s=60)
            for index, command in enumerate(commands)
        ],
        resumed_after=0,
        workspace_lost=False,
    )
    return plain.model_copy(update=changes)


class ScriptedLedger:
    """Grants what is queued, renews every lease, and takes every result once, unless scripted otherwise.

    `script[verb]` holds answers to give first; answers of a verb in `held_back` wait for its event; `verdicts` by run
    id go into every renewal.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._closing = asyncio.Event()
        self.queue: deque[Grant] = deque()
        self.verdicts: dict[str, Verdict] = {}
        self.script: dict[str, deque[Scripted]] = {
            verb: deque() for verb in ("claim", "renew", "start_step", "finish_step", "finish_run", "release")
        }
        self.held_back: dict[str, asyncio.Event] = {}
        self.asked: list[Message] = []
        self.finished: dict[str, FinishStep] = {}

    def serve(self) -> None:
        """Register on the bus."""
        for subject, model in (
            (subjects.LEDGER_CLAIM, Claim),
            (subjects.LEDGER_RENEW, Renew),
            (subjects.LEDGER_START_STEP, StartStep),
            (subjects.LEDGER_FINISH_STEP, FinishStep),
            (subjects.LEDGER_FINISH_RUN, FinishRun),
            (subjects.LEDGER_RELEASE, Release),
        ):
            self._bus.serve(subject, model, self._answer)

    def close(self) -> None:
        """Let the requests go that were met with silence."""
        self._closing.set()

    async def ring(self) -> None:
        """Publish the doorbell of a queued run."""
        await self._bus.publish_live(subjects.event("run.queued", _ids("run_any")), b"{}")

    async def wake(self, run_id: str) -> None:
        """Publish that a run is being cancelled."""
        ids = _ids(run_id)
        told = Envelope(
            id=run_id,
            type="run.cancelling",
            tenant_id=ids.tenant,
            user_id=ids.user,
            session_id=ids.session,
            run_id=ids.run,
            occurred_at=datetime.now(UTC),
            data={},
        )
        await self._bus.publish_live(subjects.event("run.cancelling", ids), told.model_dump_json().encode())

    async def listen(self, pattern: str, receive: Callable[[str, bytes], None]) -> None:
        """Hear what is published, as the gateway may."""
        await self._bus.listen(pattern, receive)
        await self._bus.connection.flush()

    def asked_for(self, kind: type[Message], run_id: str | None = None) -> list[Message]:
        """Return the requests of one kind, for one run if named."""
        asked = [request for request in self.asked if isinstance(request, kind)]
        return asked if run_id is None else [request for request in asked if _run_of(request) == run_id]

    def outcomes(self, granted: Grant) -> list[Outcome]:
        """Return the recorded outcomes of a run, in the order of its steps."""
        steps = (self.finished.get(step.step_id) for step in granted.steps)
        return [result.outcome for result in steps if result is not None]

    def ended(self, granted: Grant) -> bool:
        """Say whether the run's end is recorded."""
        last = any(self.finished[step.step_id].finish_run for step in granted.steps if step.step_id in self.finished)
        return last or bool(self.asked_for(FinishRun, granted.run_id))

    async def _answer(self, request: Message) -> Message:
        self.asked.append(request)
        verb = {Claim: "claim", Renew: "renew", StartStep: "start_step", FinishStep: "finish_step"}.get(
            type(request), "finish_run" if isinstance(request, FinishRun) else "release"
        )
        if verb in self.held_back:
            await self.held_back[verb].wait()
        scripted = self.script[verb].popleft() if self.script[verb] else None
        if isinstance(scripted, CaissonError):
            raise scripted
        answer = scripted if isinstance(scripted, Message) else self._usual(request)
        if isinstance(scripted, Silence):
            await self._closing.wait()
        return answer

    def _usual(self, request: Message) -> Message:
        match request:
            case Claim(slots=slots):
                return Grants(grants=[self.queue.popleft() for _ in range(min(slots, len(self.queue)))])
            case Renew(leases=leases):
                return Renewed(
                    verdicts={held.run_id: self.verdicts.get(held.run_id, Verdict.CONTINUE) for held in leases}
                )
            case FinishStep(step_id=step_id):
                self.finished.setdefault(step_id, request)
            case _:
                pass
        return Done()


def _run_of(request: Message) -> str:
    holding = getattr(request, "holding", None)
    return str(holding.run_id) if holding else ""


def _ids(run_id: str) -> Ids:
    return Ids(tenant=TenantId("acme"), user=UserId("u-1"), run=RunId(run_id))


@asynccontextmanager
async def scripted_ledger(nats_url: str, password: str) -> AsyncIterator[ScriptedLedger]:
    """Serve a scripted ledger as the gateway's user."""
    settings = ServiceSettings(nats_url=nats_url, nats_user="gateway", nats_password=password)
    bus = Bus(settings, service="gateway", on_closed=lambda: None)
    ledger = ScriptedLedger(bus)
    ledger.serve()
    await bus.start()
    try:
        yield ledger
    finally:
        ledger.close()
        await bus.stop()
