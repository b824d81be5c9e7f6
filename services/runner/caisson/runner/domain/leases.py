"""When a lease counts as lost, seen from the worker.

Invariant: a lease is counted from when its last good renewal was sent, so it ends here before it ends at the ledger.
"""

from dataclasses import dataclass, replace

from caisson.common.leases import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease of `duration_s`, last renewed by a request sent at `sent_at` on the worker's monotonic clock."""

    duration_s: float
    sent_at: float

    def renewed(self, sent_at: float) -> "Lease":
        """Return the lease after a good renewal. One that was sent earlier than the last changes nothing."""
        return replace(self, sent_at=max(self.sent_at, sent_at))

    def remaining_s(self, now: float) -> float:
        """Return how long the lease lives; zero or less means that it is over."""
        return self.sent_at + self.duration_s - now


def verdict_on(run_id: str, verdicts: dict[str, Verdict]) -> Verdict:
    """Return what the ledger says about a run; silence about it means lost."""
    return verdicts.get(run_id, Verdict.LOST)
