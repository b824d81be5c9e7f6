"""Leases as the edges see them: what is granted, what a worker's write did, and whom to tell."""

from dataclasses import dataclass
from typing import Protocol

from caisson.common.contexts import RunContext, SealedCredentials
from caisson.common.ids import TenantId
from caisson.common.leases import Claim, FinishStep, Grant, Holding, Renew, SecurityEvent, Verdict
from caisson.common.outcome import Outcome, StepStatus, status_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A grant with the context that the proxy must know before the worker does; whether more runs were queued."""

    grant: Grant
    context: RunContext
    more_queued: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A worker's write took effect (or had, when repeated). `ended_context` names a context that must go."""

    verdict: Verdict
    ended_context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One event of a step's end, as it will stand in the run's events."""

    type: str
    step_id: str
    data: dict[str, object]


class Leases(Protocol):
    """The ledger's leases."""

    async def grant_next(self, claim: Claim, *, newcomers: bool) -> Granted | None:
        """Grant the fairest tenant's oldest run, or nothing; with `newcomers`, only to a tenant without a lease."""

    async def renew(self, renewal: Renew) -> tuple[dict[str, Verdict], list[RunContext]]:
        """Renew what still holds; return each run's verdict and the contexts to renew with them."""

    async def contexts_of(self, tenant: TenantId) -> list[RunContext]:
        """Return the contexts of a tenant's live leases, with its credentials as they are now."""

    async def start_step(self, holding: Holding, step_id: str) -> Recorded:
        """Record that a step runs; raise LeaseLost when the lease is gone."""

    async def finish_step(self, result: FinishStep) -> Recorded:
        """Record a result and what follows it; raise LeaseLost when the lease is gone."""

    async def finish_run(self, holding: Holding) -> Recorded:
        """End a run that has nothing left to do; raise LeaseLost when the lease is gone."""

    async def release(self, holding: Holding) -> str | None:
        """Give a run back; return the context that must go, or raise LeaseLost."""

    async def recover_interrupted(self) -> list[str]:
        """Decide every run whose worker is gone or silent; return the contexts that must go."""

    async def enforce_cancel(self, run_id: str) -> str | None:
        """End a run whose worker has not confirmed the cancel; return the context that must go."""


class Contexts(Protocol):
    """The run contexts as the proxies see them."""

    async def put(self, context: RunContext) -> None:
        """Make a context known or renew it; raise Unavailable when that cannot be confirmed."""

    async def revoke(self, request_id: str) -> None:
        """Take a context away."""


class SecurityReports(Protocol):
    """Where the proxy's reports go."""

    async def record(self, event: SecurityEvent) -> None:
        """Record a report once, by its id."""


def context_credentials(run: dict[str, str], tenant: dict[str, str]) -> dict[str, SealedCredentials]:
    """Combine ciphertexts of the run and of its tenant by upstream."""
    names = run.keys() | tenant.keys()
    return {name: SealedCredentials(run=run.get(name), tenant=tenant.get(name)) for name in sorted(names)}


def step_error(outcome: Outcome, *, step_id: str) -> dict[str, object] | None:
    """Return the run's error when this outcome ends it, or None for a success."""
    status = status_of(outcome)
    if status is StepStatus.SUCCEEDED:
        return None
    code = "step_unknown" if status is StepStatus.UNKNOWN else "step_failed"
    return {"code": code, "detail": f"a step ended as {outcome.kind}", "step_id": step_id}


def security_data(event: SecurityEvent) -> dict[str, object]:
    """Return a security event as readers of the run's events see it."""
    return event.model_dump(mode="json", exclude={"run_id"})


def told_events(result: FinishStep) -> list[Told]:
    """Return the events of a step's end: what was blocked meanwhile, the end itself, the next step's start."""
    told = [
        Told(type=f"security.{event.kind}", step_id=result.step_id, data=security_data(event))
        for event in result.security
    ]
    outcome = result.outcome.model_dump(mode="json")
    streams = {
        name: output.model_dump(mode="json", exclude={"text"})
        for name, output in (("stdout", result.stdout), ("stderr", result.stderr))
    }
    data = {
        "step_id": result.step_id,
        "status": status_of(result.outcome),
        "outcome": outcome,
        "duration_ms": result.duration_ms,
        **streams,
    }
    told.append(Told(type="step.finished", step_id=result.step_id, data=data))
    if result.start_next is not None:
        told.append(Told(type="step.started", step_id=result.start_next, data={"step_id": result.start_next}))
    return told
