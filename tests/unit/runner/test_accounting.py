"""Which outcome follows from what the kernel and the runner recorded."""

from typing import Any

import pytest

from caisson.common.leases import Limits
from caisson.runner.domain.accounting import Ending, KillCause, LimitEvents, Report, outcome_of, read_report


def ended(status: int) -> Report:
    return Report(started=True, wait_status=status)


def ending(**known: Any) -> Ending:
    nothing = {"report": ended(0), "events": LimitEvents(), "disk_full": False, "killed_for": None}
    return Ending(**{**nothing, **known}, timeout_s=1, limits=Limits())


OOM, FORKS = LimitEvents(oom_kills=1), LimitEvents(refused_forks=3)
SIGKILLED, EXITED_1, EXITED_137 = 9, 1 << 8, 137 << 8

ENDINGS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "exited", "it ended by itself"),
    ({"report": ended(EXITED_137)}, "exited", "137 is only a number"),
    ({"report": ended(SIGKILLED)}, "signalled", "a SIGKILL that is not the runner's"),
    ({"report": ended(SIGKILLED), "killed_for": KillCause.TIME}, "timed_out", "the runner's SIGKILL came through"),
    (
        {"report": Report(started=True), "killed_for": KillCause.TIME},
        "timed_out",
        "process 1 died before it could tell",
    ),
    ({"report": Report(), "killed_for": KillCause.TIME}, "timed_out", "time ran out during the set-up"),
    ({"killed_for": KillCause.TIME}, "exited", "it ended before the SIGKILL came"),
    ({"report": Report(started=True), "killed_for": KillCause.TIME, "events": OOM}, "timed_out", "not relabelled"),
    (
        {"report": Report(started=True), "killed_for": KillCause.CANCEL, "events": FORKS},
        "cancelled",
        "not relabelled",
    ),
    ({"killed_for": KillCause.CANCEL, "report": ended(EXITED_1)}, "exited", "it ended before the cancel"),
    ({"events": OOM}, "oom_killed", "a killed child under a shell that says 0"),
    ({"events": OOM, "report": ended(SIGKILLED)}, "oom_killed", "the shell itself was killed"),
    ({"events": OOM, "report": Report()}, "oom_killed", "the limit does not even hold the box"),
    (
        {"events": FORKS, "report": Report(started=True), "killed_for": KillCause.LIMIT},
        "pids_exhausted",
        "ended for it",
    ),
    ({"events": LimitEvents(oom_kills=1, refused_forks=1)}, "oom_killed", "both: memory was enforced by force"),
    ({"disk_full": True}, "exited", "success on a full disk is success"),
    ({"disk_full": True, "report": ended(EXITED_1)}, "disk_full", "failure on a full disk"),
    ({"disk_full": True, "report": ended(7)}, "disk_full", "SIGBUS on a full disk"),
    ({"report": Report()}, "not_started", "bubblewrap failed"),
    ({"report": Report(failure="uid: Operation not permitted")}, "not_started", "process 1 failed"),
    ({"report": Report(started=True)}, "signalled", "process 1 was killed by somebody else"),
]


@pytest.mark.parametrize(("known", "kind", "why"), ENDINGS, ids=[why for *_, why in ENDINGS])
def test_the_outcome_follows_from_the_records(known: dict[str, Any], kind: str, why: str) -> None:
    assert outcome_of(ending(**known)).kind == kind


REPORTS = [
    ("", Report(), "nothing"),
    ("started\n", Report(started=True), "killed while it ran"),
    ("started\nended 256\n", Report(started=True, wait_status=256), "the usual"),
    ("failed uid: No\n", Report(failure="uid: No"), "before the shell"),
    (
        "started\nfailed execute the shell: No\nended 32000\n",
        Report(failure="execute the shell: No", wait_status=32000),
        "no shell",
    ),
]


@pytest.mark.parametrize(("text", "report", "why"), REPORTS, ids=[why for *_, why in REPORTS])
def test_the_report_is_read_line_by_line(text: str, report: Report, why: str) -> None:
    assert read_report(text) == report
