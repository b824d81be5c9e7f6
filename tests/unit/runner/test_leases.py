"""When a lease counts as lost, and what to do when a write fails."""

import pytest

from caisson.common.errors import (
    CaissonError,
    Conflict,
    Internal,
    InvalidInput,
    LateResult,
    LeaseLost,
    TimedOut,
    Unavailable,
)
from caisson.common.leases import Verdict
from caisson.runner.domain.leases import Lease, verdict_on
from caisson.runner.domain.retrying import Abandon, Retry, Stop, after_failure


def test_a_lease_is_counted_from_when_its_renewal_was_sent() -> None:
    lease = Lease(duration_s=15, sent_at=100)
    assert lease.remaining_s(105) == 10
    assert lease.renewed(104).remaining_s(105) == 14
    assert lease.remaining_s(115) == 0


def test_an_answer_that_overtook_another_does_not_shorten_a_lease() -> None:
    assert Lease(duration_s=15, sent_at=100).renewed(110).renewed(107).remaining_s(110) == 15


def test_a_run_that_the_ledger_does_not_mention_is_lost() -> None:
    assert verdict_on("run_1", {"run_1": Verdict.CANCEL}) is Verdict.CANCEL
    assert verdict_on("run_2", {"run_1": Verdict.CANCEL}) is Verdict.LOST


@pytest.mark.parametrize(
    ("error", "failures", "decision"),
    [
        pytest.param(TimedOut("?"), 1, Retry(after_s=0.05), id="unknown: the same call again, soon"),
        pytest.param(Unavailable("?"), 3, Retry(after_s=0.2), id="away: again, less often"),
        pytest.param(
            Unavailable("?"), 10_000, Retry(after_s=1.0), id="away for long: the lease decides, not a count"
        ),
        pytest.param(LeaseLost("?"), 1, Stop(stale=True), id="another fence: the last word"),
        pytest.param(LateResult("?"), 1, Stop(stale=False), id="late: the last word, but no stale fence"),
        pytest.param(Internal("?"), 3, Retry(after_s=0.2), id="a bug may be a blink of the database"),
        pytest.param(Internal("?"), 4, Abandon(reason="internal: ?"), id="a bug is never retried for ever"),
        pytest.param(InvalidInput("?"), 1, Abandon(reason="invalid_input: ?"), id="it will not get better"),
        pytest.param(Conflict("?"), 1, Abandon(reason="conflict: ?"), id="nor will this"),
    ],
)
def test_a_failed_write_is_decided_by_its_error(
    error: CaissonError, failures: int, decision: Retry | Stop | Abandon
) -> None:
    assert after_failure(error, failures=failures) == decision
