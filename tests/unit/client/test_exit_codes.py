"""Exit codes, row by row; the help tells the same."""

from typing import Any

import pytest

from caisson.client import cli, exit_codes
from caisson.client.exit_codes import of_outcome, of_run
from caisson.client.models import Outcome, Run

OUTCOMES: list[tuple[str, dict[str, Any], int]] = [
    ("success", {"kind": "exited", "exit_code": 0}, 0),
    ("the command's own code", {"kind": "exited", "exit_code": 3}, 3),
    ("a program that exits 137 by itself", {"kind": "exited", "exit_code": 137}, 137),
    ("as a shell tells a signal", {"kind": "signalled", "signal": 9}, 137),
    ("as a shell tells a segmentation fault", {"kind": "signalled", "signal": 11}, 139),
    ("as timeout(1) tells it", {"kind": "timed_out", "reason": "30 s"}, 124),
    ("as after Ctrl-C", {"kind": "cancelled"}, 130),
    ("memory", {"kind": "oom_killed", "reason": "512 MiB"}, 137),
    ("processes", {"kind": "pids_exhausted", "reason": "128"}, 137),
    ("disk, whatever the command said", {"kind": "disk_full", "exit_code": 1, "reason": "256 MiB"}, 137),
    ("a guard", {"kind": "blocked", "guard": "tenant_mismatch", "reason": "…"}, 126),
    ("no sandbox", {"kind": "not_started", "reason": "no cgroup"}, 125),
    ("unknown is neither success nor failure", {"kind": "lost"}, 75),
    ("an outcome of a newer gateway is unknown", {"kind": "evaporated"}, 75),
]


def run(status: str, *outcomes: dict[str, Any], error: dict[str, str] | None = None) -> Run:
    steps = [
        {
            "id": f"stp_{index}",
            "index": index,
            "status": {"cancelled": "cancelled", "lost": "unknown"}.get(
                outcome["kind"], "succeeded" if outcome.get("exit_code") == 0 else "failed"
            ),
            "outcome": outcome,
        }
        for index, outcome in enumerate(outcomes)
    ]
    ids = {"id": "run_1", "tenant_id": "acme", "user_id": "u-1", "created_at": "2026-01-31T12:00:00.000Z"}
    return Run.model_validate({**ids, "status": status, "steps": steps, "error": error})


@pytest.mark.parametrize(("outcome", "code"), [row[1:] for row in OUTCOMES], ids=[row[0] for row in OUTCOMES])
def test_a_failed_run_ends_with_the_code_of_its_step(outcome: dict[str, Any], code: int) -> None:
    assert of_outcome(Outcome.model_validate(outcome)) == code
    status = "succeeded" if code == 0 else "cancelled" if outcome["kind"] == "cancelled" else "failed"
    assert of_run(run(status, outcome)) == code


OK, THREE, FOUR = ({"kind": "exited", "exit_code": code} for code in (0, 3, 4))

RUNS: list[tuple[str, Run, int]] = [
    ("the first step that did not succeed decides", run("failed", OK, THREE, FOUR), 3),
    ("steps that were never reached do not", run("failed", THREE, {"kind": "cancelled"}), 3),
    ("a run's own time limit", run("failed", OK, error={"code": "run_timeout"}), 124),
    ("a lost worker", run("failed", error={"code": "worker_lost"}), 75),
    ("a step without a result", run("failed", {"kind": "lost"}, error={"code": "step_unknown"}), 75),
    ("a cancelled run is cancelled whatever failed before", run("cancelled", THREE), 130),
    ("a failed run never ends with 0", run("failed", OK, error={"code": "other"}), 1),
    ("a cancelled run never ends with 0", run("cancelled"), 130),
]


@pytest.mark.parametrize(("ended", "code"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
def test_a_run_ends_with_the_code_of_what_decided_it(ended: Run, code: int) -> None:
    assert of_run(ended) == code


def test_the_help_names_every_fixed_code() -> None:
    fixed = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    named = {code for code, _ in cli.EXIT_CODES}
    assert named == {str(code) for code in fixed - {exit_codes.SIGNALLED}} | {"0", "n", "128+s"}
