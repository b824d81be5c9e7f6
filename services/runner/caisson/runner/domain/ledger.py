"""What a worker needs of the ledger. Every write repeats the holding and counts once however often it is sent."""

from typing import Protocol

from caisson.common.leases import Claim, Done, FinishRun, FinishStep, Grants, Release, Renew, Renewed, StartStep


class Ledger(Protocol):
    """The ledger's side for workers.

    Every call raises LeaseLost when the worker no longer holds the run, TimedOut when the effect is unknown, and
    Unavailable when the ledger cannot be reached; the last two may be repeated.
    """

    async def claim(self, request: Claim) -> Grants:
        """Ask for work."""

    async def renew(self, request: Renew) -> Renewed:
        """Renew leases."""

    async def start_step(self, request: StartStep) -> Done:
        """Record that a step is about to run."""

    async def finish_step(self, request: FinishStep) -> Done:
        """Record a step's result and what follows it."""

    async def finish_run(self, request: FinishRun) -> Done:
        """Record the run's end."""

    async def release(self, request: Release) -> Done:
        """Give a run back."""
