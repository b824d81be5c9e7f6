"""What becomes of a run's commands."""

import asyncio

from caisson.common import metrics, subjects
from caisson.common.ids import Ids, RunId, TenantId, UserId
from caisson.common.leases import FinishStep, OutputChunk, Release, SecurityKind
from caisson.common.outcome import Blocked, Exited, NotStarted, TimedOut
from caisson.runner.domain.boxes import Refusal
from tests.service.runner.conftest import StartBench
from tests.support.eventually import eventually
from tests.support.fake_rooms import FakeRooms
from tests.support.scripted_ledger import ScriptedLedger, grant


async def test_each_result_is_recorded_with_what_follows_it(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("echo a", "echo b", "echo c")
    ledger.queue.append(run)
    await start()
    await eventually(lambda: ledger.ended(run))
    first, second, third = (ledger.finished[step.step_id] for step in run.steps)
    assert (first.start_next, second.start_next, third.start_next) == (second.step_id, third.step_id, None)
    assert (first.finish_run, second.finish_run, third.finish_run) == (False, False, True)


async def test_a_failed_step_stops_the_run(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("exit 1", "echo never")
    ledger.queue.append(run)
    await start()
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [Exited(exit_code=1)]


async def test_a_failed_step_does_not_stop_a_run_that_continues(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("exit 1", "echo b", on_failure="continue")
    ledger.queue.append(run)
    await start()
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [Exited(exit_code=1), Exited(exit_code=0)]


async def test_a_command_sees_what_the_run_is_given_and_nothing_of_the_runner(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("echo a", env={"REGION": "eu", "TENANT_ID": "globex"}, datasets=["ds_1", "ds_2"])
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: ledger.ended(run))
    (command,) = bench.rooms.rooms[0].commands
    assert command.environment == {
        "TENANT_ID": "acme",
        "USER_ID": "u-1",
        "RUN_ID": run.run_id,
        "REQUEST_ID": run.request_id,
        "WORKSPACE": "/workspace",
        "HOME": "/workspace",
        "API_HOST": "http://127.0.0.1:9191",
        "DATASET_ID": "ds_1",
        "PATH": command.environment["PATH"],
        "LANG": "C.UTF-8",
        "REGION": "eu",
    }


async def test_a_blocked_command_never_runs_and_is_reported(start: StartBench, ledger: ScriptedLedger) -> None:
    before = metrics.COMMAND_BLOCKED.labels(guard="tenant_mismatch")._value.get()
    run = grant('curl "$API_HOST/metrics/v1/totals?tenantId=globex"', "echo never")
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: ledger.ended(run))
    (outcome,) = ledger.outcomes(run)
    assert isinstance(outcome, Blocked)
    assert outcome.guard == "tenant_mismatch"
    (event,) = ledger.finished[run.steps[0].step_id].security
    assert (event.kind, event.guard) == (SecurityKind.COMMAND_BLOCKED, "tenant_mismatch")
    assert "globex" in (event.snippet or "")
    assert all(room.commands == [] for room in bench.rooms.rooms)
    assert metrics.COMMAND_BLOCKED.labels(guard="tenant_mismatch")._value.get() == before + 1


async def test_what_the_network_rules_refused_is_reported_with_the_step(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    before = metrics.EGRESS_BLOCKED._value.get()
    rooms = FakeRooms()
    rooms.refused = (Refusal(destination="169.254.169.254:80/tcp", packets=3),)
    run = grant("echo a")
    ledger.queue.append(run)
    await start(rooms=rooms)
    await eventually(lambda: ledger.ended(run))
    (event,) = ledger.finished[run.steps[0].step_id].security
    assert event.kind is SecurityKind.EGRESS_BLOCKED
    assert event.detail == {"destination": "169.254.169.254:80/tcp", "packets": 3}
    assert metrics.EGRESS_BLOCKED._value.get() == before + 3


async def test_a_room_that_cannot_be_made_is_said_and_nothing_runs(start: StartBench, ledger: ScriptedLedger) -> None:
    rooms = FakeRooms()
    rooms.broken = "network namespace: no memory"
    run = grant("echo a")
    ledger.queue.append(run)
    await start(rooms=rooms)
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [NotStarted(reason="network namespace: no memory")]


async def test_the_time_limit_of_the_run_ends_its_step_and_then_the_run(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("sleep 100", "echo never", remaining_s=0.2)
    ledger.queue.append(run)
    await start()
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [TimedOut(reason="the run's time limit of 600 s passed")]
    assert not ledger.finished[run.steps[0].step_id].finish_run


async def test_a_run_with_nothing_left_to_do_is_ended(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant()
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: ledger.ended(run))
    assert bench.rooms.rooms == []


async def test_output_is_published_while_it_comes(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant('echo "grüße"')
    heard: list[OutputChunk] = []
    ids = Ids(tenant=TenantId("acme"), user=UserId("u-1"), run=RunId(run.run_id))
    await ledger.listen(
        subjects.run_output_pattern(ids), lambda _, body: heard.append(OutputChunk.model_validate_json(body))
    )
    ledger.queue.append(run)
    await start()
    await eventually(lambda: heard)
    assert heard == [OutputChunk(step_id=run.steps[0].step_id, stream="stdout", offset=0, text="grüße\n")]


async def test_a_draining_worker_gives_back_what_it_cannot_finish(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("sleep 100")
    ledger.queue.append(run)
    bench = await start(drain_s=0.1)
    room = await eventually(lambda: bench.rooms.running(run.run_id))
    assert room is not None
    await bench.runner.drain()
    assert room.left
    assert room.killed == 1
    assert len(ledger.asked_for(Release, run.run_id)) == 1
    assert ledger.asked_for(FinishStep, run.run_id) == []


async def test_a_draining_worker_finishes_what_it_can(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("sleep 100")
    ledger.queue.append(run)
    bench = await start(drain_s=10)
    room = await eventually(lambda: bench.rooms.running(run.run_id))
    assert room is not None
    draining = asyncio.create_task(bench.runner.drain())
    room.cancel()
    await draining
    assert ledger.ended(run)
