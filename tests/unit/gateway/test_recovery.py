"""What becomes of a run whose worker is gone: a table of facts and decisions."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from caisson.common.outcome import Cancelled, Lost, TimedOut
from caisson.gateway.domain.recovery import End, Interrupted, Requeue, decide

IDLE = Interrupted(
    attempt=1,
    max_attempts=3,
    on_lost="retry",
    step_running=False,
    has_results=False,
    cancelling=False,
    cancel_reason=None,
    overdue=False,
    timeout_s=600,
)

DECISIONS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "requeue +1", "the worker died before it began"),
    ({"step_running": True}, "requeue +1", "retry is the default"),
    ({"has_results": True}, "requeue +1", "recorded results stay; the rest is done by another worker"),
    ({"attempt": 2}, "requeue +1", "the last attempt but one"),
    ({"attempt": 3}, "failed worker_lost", "no attempt is left"),
    ({"attempt": 7}, "failed worker_lost", "the tenant lowered its limit meanwhile"),
    ({"max_attempts": 1}, "failed worker_lost", "one attempt means no retry"),
    ({"on_lost": "stop"}, "requeue +1", "no step ran, so nothing is unknown"),
    ({"on_lost": "stop", "step_running": True}, "failed step_unknown", "the caller wants no second execution"),
    ({"on_lost": "stop", "step_running": True, "attempt": 3}, "failed step_unknown", "unknown beats worker_lost"),
    ({"overdue": True}, "failed run_timeout", "its time is over"),
    ({"overdue": True, "on_lost": "stop", "step_running": True}, "failed run_timeout", "the deadline beats unknown"),
    ({"cancelling": True}, "cancelled cancelled", "cancel reaches a run whose worker is dead"),
    ({"cancelling": True, "overdue": True, "attempt": 3}, "cancelled cancelled", "cancel beats everything"),
    ({"released": True}, "requeue +0", "a drained worker costs no attempt"),
    ({"released": True, "attempt": 3}, "requeue +0", "not even the last one"),
    ({"released": True, "cancelling": True}, "cancelled cancelled", "a cancelled run is not given to another"),
    ({"released": True, "overdue": True}, "failed run_timeout", "nor is one whose time is over"),
    ({"released": True, "on_lost": "stop", "step_running": True}, "failed step_unknown", "the step was cut off"),
]


BOTH = list(product((False, True), repeat=2))


def told(decision: Requeue | End) -> str:
    match decision:
        case Requeue(attempts=attempts):
            return f"requeue +{attempts}"
        case End(status=status, code=code):
            return f"{status} {code}"


@pytest.mark.parametrize(("facts", "expected", "reason"), DECISIONS)
def test_a_run_without_its_worker_is_decided_by_its_facts(facts: dict[str, Any], expected: str, reason: str) -> None:
    assert told(decide(replace(IDLE, **facts))) == expected, reason


def test_no_combination_of_facts_loses_a_run_or_calls_it_a_success() -> None:
    names = ("step_running", "has_results", "cancelling", "overdue", "released")
    combinations = product(*[(False, True)] * len(names), (1, 3, 4), ("retry", "stop"))
    for combination in combinations:
        values: dict[str, Any] = dict(zip((*names, "attempt", "on_lost"), combination, strict=True))
        facts = replace(IDLE, **values)
        match decide(facts):
            case Requeue(attempts=attempts):
                assert not any((facts.cancelling, facts.overdue))
                assert facts.released or facts.attempt + attempts <= facts.max_attempts
            case End(status=status):
                assert status in {"failed", "cancelled"}


def test_the_running_step_gets_the_outcome_that_is_true() -> None:
    def outcome(**facts: Any) -> object:
        decision = decide(replace(IDLE, step_running=True, **facts))
        assert isinstance(decision, End)
        return decision.outcome

    assert outcome(cancelling=True, cancel_reason="by Ann") == Cancelled(reason="by Ann")
    assert outcome(overdue=True) == TimedOut(reason="the run exceeded 600 s")
    assert outcome(on_lost="stop") == outcome(attempt=3) == Lost()


@pytest.mark.parametrize(("has_results", "step_running"), BOTH)
def test_a_workspace_is_called_lost_when_something_had_been_done_in_it(has_results: bool, step_running: bool) -> None:  # noqa: FBT001 - a table
    decision = decide(replace(IDLE, has_results=has_results, step_running=step_running))
    assert isinstance(decision, Requeue)
    assert decision.workspace_lost == (has_results or step_running)
