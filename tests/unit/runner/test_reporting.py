"""Security events of a step: few, flat, and the same ids however often they are reported."""

from caisson.runner.domain.boxes import Refusal
from caisson.runner.domain.guards.decision import Blocked
from caisson.runner.domain.reporting import command_blocked, egress_blocked
from tests.support.scripted_ledger import grant


def test_a_report_that_is_repeated_has_the_same_id_and_another_fence_has_another() -> None:
    run = grant("true")
    decision = Blocked(guard="tenant_mismatch", reason="use $TENANT_ID", snippet="curl")
    first = command_blocked(run, "stp_1", decision)
    assert command_blocked(run, "stp_1", decision) == first
    assert command_blocked(run.model_copy(update={"fence": 2}), "stp_1", decision).id != first.id


def test_many_destinations_become_few_events_that_count_every_packet() -> None:
    refused = [Refusal(destination=f"10.0.0.{n}:80/tcp", packets=n) for n in range(100)]
    events = egress_blocked(grant("true"), "stp_1", refused)
    assert len(events) == 21
    assert sum(event.detail["packets"] for event in events) == sum(range(100))
    assert len({event.id for event in events}) == 21
    assert events[-1].detail["destinations"] == 80
