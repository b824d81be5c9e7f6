"""Periodic work that one replica at a time does for all. Invariant: only the holder of the newest lease writes.

Time is the database's. A holder that stops renewing loses the lease, and the next one goes on from what was saved.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

State = dict[str, Any]
"""How far a pass has come: ids and counts, never a text."""


class Work(StrEnum):
    """What is done by one replica at a time."""

    SWEEP = "sweep"
    RECONCILE = "reconcile"
    CONSOLIDATE = "consolidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do a pass, until it lapses; each grant has a higher fence. `state` is what was saved before."""

    work: Work
    fence: int
    state: State


class Pass(Protocol):
    """Work in steps, each short against the lease."""

    def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        """Go on from `lease.state` and yield after each step how far it is; after the last, where the next begins.

        Raises:
            LeaseLost: when a write finds that the lease is another's.
        """


class Leases(Protocol):
    """Who may do which work."""

    async def take(self, work: Work) -> Lease | None:
        """Take what is due and held by nobody."""

    async def keep(self, lease: Lease, state: State) -> None:
        """Save how far the pass is and hold on; raise LeaseLost."""

    async def finish(self, lease: Lease, state: State, *, again_in_s: float) -> None:
        """End the pass; raise LeaseLost."""

    async def give_back(self, lease: Lease) -> None:
        """Let another go on at once, if the lease is still held."""

    async def overdue_s(self, work: Work) -> float:
        """Return for how long work that is due has made no step, whoever holds it; 0 while it is not due."""

    async def hasten(self, work: Work) -> None:
        """Have the next pass begin now."""

    async def release_all(self) -> None:
        """Give back what a process that is gone held. Only where there is one replica."""
