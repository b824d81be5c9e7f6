"""What to do when a write to the ledger failed: facts in, decision out.

Invariant: nothing is repeated after `lease_lost`; a bug at the ledger is repeated a few times and never for ever.
"""

from dataclasses import dataclass
from typing import Final

from caisson.common.errors import CaissonError, Internal, LateResult, LeaseLost

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_MAX_INTERNAL: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Send the same call again after a pause."""

    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The lease is gone: kill, write nothing. `stale` tells a write without a lease from a result that came late."""

    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """The ledger will not take this write: let the lease expire, so that the attempt is counted."""

    reason: str


def after_failure(error: CaissonError, *, failures: int) -> Retry | Stop | Abandon:
    """Decide after the `failures`-th failure of a call in a row (1 is the first)."""
    pause_s: float = min(_FIRST_PAUSE_S * 2 ** min(failures - 1, 16), _LONGEST_PAUSE_S)
    if isinstance(error, LeaseLost):
        return Stop(stale=not isinstance(error, LateResult))
    if error.retryable or (isinstance(error, Internal) and failures <= _MAX_INTERNAL):
        return Retry(after_s=pause_s)
    return Abandon(reason=f"{error.code}: {error.detail}")
