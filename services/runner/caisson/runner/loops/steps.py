"""Carrying out one step: from the command to its outcome.

Invariant: a command runs only when the run is neither cancelled nor overdue, the guards allow it, and
its room stands.
"""

from dataclasses import dataclass, field
from time import monotonic
from typing import assert_never

import structlog
from opentelemetry import trace

from caisson.common import metrics as shared
from caisson.common import tracing
from caisson.common.errors import Unavailable
from caisson.common.leases import BashStep, SecurityEvent
from caisson.common.outcome import Blocked as BlockedOutcome
from caisson.common.outcome import Cancelled, NotStarted, Outcome, Output, TimedOut
from caisson.runner import metrics
from caisson.runner.domain import reporting
from caisson.runner.domain.boxes import BoxCommand, BoxResult, Room
from caisson.runner.domain.environment import command_environment
from caisson.runner.domain.guards.decision import Allowed, Blocked, Guards, Trusted
from caisson.runner.domain.live import Live
from caisson.runner.domain.naming import step_ids
from caisson.runner.domain.plan import allowance
from caisson.runner.loops.holdings import HeldRun
from caisson.runner.loops.quarters import Quarters, execute

_NOTHING = Output()

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What is recorded about a step."""

    outcome: Outcome
    stdout: Output = _NOTHING
    stderr: Output = _NOTHING
    duration_ms: float = 0
    security: list[SecurityEvent] = field(default_factory=list)


class StepWork:
    """Carries out the steps of one held run."""

    def __init__(
        self, held: HeldRun, quarters: Quarters, *, guards: Guards, live: Live, hidden: tuple[str, ...]
    ) -> None:
        self._held = held
        self._grant = held.grant
        self._quarters = quarters
        self._guards = guards
        self._live = live
        self._environment = command_environment(held.grant)
        self._trusted = Trusted(
            tenant_id=self._grant.tenant_id,
            datasets=tuple(self._grant.datasets),
            environment=self._environment,
            hidden=hidden,
        )

    async def carry_out(self, step: BashStep) -> Result:
        """Return the result of a step whose start is recorded."""
        with tracer.start_as_current_span("step") as span:
            tracing.describe(span, step_ids(self._grant, step.step_id))
            try:
                decision = await self._guards.inspect(step.command, self._trusted)
                match decision:
                    case Allowed():
                        return await self._run(await self._quarters.room(), step)
                    case Blocked():
                        return self._blocked(step, decision)
                    case _:
                        assert_never(decision)
            except Unavailable as error:
                log.warning("step.not_started", step=step.step_id, reason=error.detail)
                return Result(outcome=NotStarted(reason=error.detail))

    async def _run(self, room: Room, step: BashStep) -> Result:
        granted = allowance(step, remaining_s=self._held.overdue_at - monotonic())
        if self._held.cancelling.is_set():
            return Result(outcome=Cancelled())
        if granted.timeout_s <= 0:
            return Result(outcome=self._run_overdue())
        live = self._live.open(step_ids(self._grant, step.step_id))
        command = BoxCommand(script=step.command, environment=self._environment, timeout_s=granted.timeout_s)
        with metrics.STEP_SECONDS.time():
            done = await execute(room, command, live.receive, cancelling=self._held.cancelling)
        live.close()
        outcome = done.outcome
        if granted.ends_run and isinstance(outcome, TimedOut):
            outcome = self._run_overdue()
        return self._ran(step, done, outcome)

    def _ran(self, step: BashStep, done: BoxResult, outcome: Outcome) -> Result:
        security = reporting.egress_blocked(self._grant, step.step_id, done.refused)
        if done.refused:
            packets = sum(refusal.packets for refusal in done.refused)
            shared.EGRESS_BLOCKED.inc(packets)
            log.warning("egress.blocked", step=step.step_id, packets=packets, destinations=len(done.refused))
        return Result(
            outcome=outcome,
            stdout=done.stdout,
            stderr=done.stderr,
            duration_ms=done.duration_ms,
            security=security,
        )

    def _blocked(self, step: BashStep, decision: Blocked) -> Result:
        shared.COMMAND_BLOCKED.labels(guard=decision.guard).inc()
        log.warning("command.blocked", step=step.step_id, guard=decision.guard, snippet=decision.snippet)
        return Result(
            outcome=BlockedOutcome(guard=decision.guard, reason=decision.reason),
            security=[reporting.command_blocked(self._grant, step.step_id, decision)],
        )

    def _run_overdue(self) -> TimedOut:
        return TimedOut(reason=f"the run's time limit of {self._grant.limits.timeout_s:g} s passed")
