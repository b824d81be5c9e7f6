"""The guards over a corpus of commands: both rates are measured, and both must be exact."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from caisson.runner.domain.guards.decision import Allowed, Blocked, Trusted
from caisson.runner.domain.guards.inspection import inspect

TRUSTED = Trusted(
    tenant_id="acme",
    datasets=("ds_1", "ds_2"),
    environment={
        "TENANT_ID": "acme",
        "USER_ID": "u-1",
        "RUN_ID": "run_1",
        "REQUEST_ID": "req_1",
        "WORKSPACE": "/workspace",
        "HOME": "/workspace",
        "API_HOST": "http://127.0.0.1:9191",
        "DATASET_ID": "ds_1",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "REGION": "eu",
    },
    hidden=("/data/boxes",),
)


def table(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())


def blocked_rows() -> Iterator[Any]:
    for guard, rows in table("blocked").items():
        for row in rows:
            yield pytest.param(guard, row["command"], id=f"{guard}: {row['why']}")


@pytest.mark.parametrize(("guard", "command"), list(blocked_rows()))
def test_a_command_that_breaks_a_rule_is_blocked_by_its_guard(guard: str, command: str) -> None:
    decision = inspect(command, TRUSTED)
    assert isinstance(decision, Blocked)
    assert decision.guard == guard
    assert 0 < len(decision.snippet) <= 200
    assert decision.reason.count(". ") == 0
    assert "$" in decision.reason


@pytest.mark.parametrize("command", [pytest.param(row["command"], id=row["why"]) for row in table("legitimate")])
def test_a_legitimate_command_is_allowed(command: str) -> None:
    assert inspect(command, TRUSTED) == Allowed()


@pytest.mark.parametrize(
    "command", [pytest.param(row["command"], id=f"{row['why']}, held by {row['held_by']}") for row in table("missed")]
)
def test_a_clever_command_is_allowed_here_and_held_by_a_later_layer(command: str) -> None:
    assert inspect(command, TRUSTED) == Allowed()


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert sum(len(rows) for rows in table("blocked").values()) >= 150
    assert len(table("legitimate")) >= 150
    commands = [row["command"] for name in ("legitimate", "missed") for row in table(name)]
    commands += [row["command"] for rows in table("blocked").values() for row in rows]
    assert len(commands) == len(set(commands))
