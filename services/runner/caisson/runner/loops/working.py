"""Working on one run: its steps in order, each carried out and recorded with what follows it.

Invariant: nothing is written after the lease is lost, and the room is left whatever happened.
"""

from collections import deque
from time import monotonic
from typing import assert_never

import structlog
from opentelemetry import trace

from caisson.common import telemetry, tracing
from caisson.common.leases import BashStep, FinishRun, FinishStep, StartStep
from caisson.runner import metrics
from caisson.runner.domain import plan
from caisson.runner.domain.boxes import Rooms
from caisson.runner.domain.guards.decision import Guards
from caisson.runner.domain.ledger import Ledger
from caisson.runner.domain.live import Live
from caisson.runner.domain.naming import run_ids
from caisson.runner.loops.holdings import End, HeldRun
from caisson.runner.loops.quarters import Quarters
from caisson.runner.loops.recording import LetGo, record
from caisson.runner.loops.steps import Result, StepWork

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


class RunWork:
    """Works on held runs."""

    def __init__(self, *, ledger: Ledger, rooms: Rooms, guards: Guards, live: Live, hidden: tuple[str, ...]) -> None:
        self._ledger = ledger
        self._rooms = rooms
        self._guards = guards
        self._live = live
        self._hidden = hidden

    async def work(self, held: HeldRun) -> None:
        """Carry a run to its end, or until it is let go."""
        telemetry.bind(run_ids(held.grant))
        quarters = Quarters(self._rooms, held.grant)
        try:
            with tracer.start_as_current_span("run", context=tracing.under(held.grant.traceparent)) as span:
                tracing.describe(span, run_ids(held.grant))
                await self._carry_through(held, quarters)
            held.end = End.FINISHED
        except LetGo as gone:
            held.end = gone.end
        except Exception:
            held.end = End.ABANDONED
            raise
        finally:
            await quarters.leave()

    async def _carry_through(self, held: HeldRun, quarters: Quarters) -> None:
        pending = deque(held.grant.steps)
        if not pending:
            await self._finish_run(held)
            return
        quarters.prepare()
        first = StartStep(holding=held.holding, step_id=pending[0].step_id)
        await record(held, lambda: self._ledger.start_step(first))
        steps = StepWork(held, quarters, guards=self._guards, live=self._live, hidden=self._hidden)
        while pending:
            step = pending.popleft()
            result = await steps.carry_out(step)
            await self._record(held, step, result, pending)

    async def _record(self, held: HeldRun, step: BashStep, result: Result, pending: deque[BashStep]) -> None:
        """Record a result and what follows it; clear `pending` when the run ends with it."""
        metrics.STEPS.labels(outcome=result.outcome.kind).inc()
        follows = plan.after_step(
            result.outcome,
            pending,
            on_failure=held.grant.on_failure,
            cancelling=held.cancelling.is_set(),
            overdue=monotonic() >= held.overdue_at,
        )
        match follows:
            case plan.StartNext(step=following):
                await self._finish_step(held, step, result, start_next=following.step_id)
            case plan.FinishRun():
                pending.clear()
                await self._finish_step(held, step, result, finish_run=True)
            case plan.EndOverdue():
                pending.clear()
                await self._finish_step(held, step, result)
                await self._finish_run(held)
            case _:
                assert_never(follows)

    async def _finish_step(
        self,
        held: HeldRun,
        step: BashStep,
        result: Result,
        *,
        start_next: str | None = None,
        finish_run: bool = False,
    ) -> None:
        request = FinishStep(
            holding=held.holding,
            step_id=step.step_id,
            outcome=result.outcome,
            stdout=result.stdout,
            stderr=result.stderr,
            duration_ms=result.duration_ms,
            security=result.security,
            start_next=start_next,
            finish_run=finish_run,
        )
        await record(held, lambda: self._ledger.finish_step(request), last=finish_run)

    async def _finish_run(self, held: HeldRun) -> None:
        request = FinishRun(holding=held.holding)
        await record(held, lambda: self._ledger.finish_run(request), last=True)
