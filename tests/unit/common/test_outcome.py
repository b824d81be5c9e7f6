"""Only `exited(0)` is a success, and what is unknown is called unknown."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from caisson.common.outcome import (
    Blocked,
    Cancelled,
    DiskFull,
    Exited,
    Lost,
    NotStarted,
    OomKilled,
    Outcome,
    Output,
    PidsExhausted,
    Signalled,
    StepStatus,
    TimedOut,
    status_of,
)

STATUSES: list[tuple[Outcome, StepStatus, str]] = [
    (Exited(exit_code=0), StepStatus.SUCCEEDED, "the only success"),
    (Exited(exit_code=1), StepStatus.FAILED, "a failing command"),
    (Exited(exit_code=255), StepStatus.FAILED, "the largest exit code"),
    (Signalled(signal=11), StepStatus.FAILED, "a crash"),
    (TimedOut(reason="60 s"), StepStatus.FAILED, "too slow"),
    (OomKilled(reason="512 MiB"), StepStatus.FAILED, "too much memory"),
    (PidsExhausted(reason="128"), StepStatus.FAILED, "too many processes"),
    (DiskFull(reason="256 MiB", exit_code=0), StepStatus.FAILED, "full disk, whatever the command made of it"),
    (Blocked(guard="tenant", reason="no"), StepStatus.FAILED, "it never ran"),
    (NotStarted(reason="no namespace"), StepStatus.FAILED, "it never ran"),
    (Cancelled(), StepStatus.CANCELLED, "the caller wanted it"),
    (Lost(), StepStatus.UNKNOWN, "nobody knows"),
]
ANY_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)


@pytest.mark.parametrize(("outcome", "status", "reason"), STATUSES)
def test_an_outcome_means_one_status_and_survives_the_wire(outcome: Outcome, status: StepStatus, reason: str) -> None:
    assert status_of(outcome) is status, reason
    assert ANY_OUTCOME.validate_json(ANY_OUTCOME.dump_json(outcome)) == outcome


def test_the_table_holds_every_kind_of_outcome() -> None:
    kinds: tuple[Any, ...] = get_args(get_args(Outcome)[0])
    assert {type(row[0]) for row in STATUSES} == set(kinds)


@pytest.mark.parametrize("body", ['{"kind":"other"}', "{}", '{"kind":"exited"}', '{"kind":"exited","exit_code":"0"}'])
def test_an_outcome_outside_the_set_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        ANY_OUTCOME.validate_json(body)


def test_output_with_a_nul_is_refused_where_it_enters_and_emoji_are_not() -> None:
    with pytest.raises(ValidationError):
        Output(text="a\x00b")
    assert Output.model_validate_json(Output(text="😀").model_dump_json()).text == "😀"
