"""A worker works while it holds the lease, and not a moment longer."""

from caisson.common import metrics
from caisson.common.errors import Internal, LateResult, LeaseLost, Unavailable
from caisson.common.leases import Done, FinishRun, FinishStep, Release, Renew, StartStep, Verdict
from caisson.common.outcome import Cancelled, Exited
from tests.service.runner.conftest import Bench, StartBench
from tests.support.eventually import eventually
from tests.support.fake_rooms import FakeRoom
from tests.support.scripted_ledger import SILENCE, ScriptedLedger, grant


async def running(bench: Bench, run_id: str) -> FakeRoom:
    room = await eventually(lambda: bench.rooms.running(run_id))
    assert room is not None
    return room


def writes(ledger: ScriptedLedger, run_id: str) -> int:
    return sum(len(ledger.asked_for(kind, run_id)) for kind in (FinishStep, FinishRun, Release))


async def test_one_heartbeat_renews_all_leases(start: StartBench, ledger: ScriptedLedger) -> None:
    first, second = grant("sleep 100"), grant("sleep 100")
    ledger.queue.extend([first, second])
    await start()

    def renewed_together() -> bool:
        renewals = [request for request in ledger.asked_for(Renew) if isinstance(request, Renew)]
        return any({held.run_id for held in each.leases} == {first.run_id, second.run_id} for each in renewals)

    await eventually(renewed_together)


async def test_a_failed_renewal_is_retried_while_the_lease_lives(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("sleep 100", lease_s=3.0)
    ledger.script["renew"].extend([Unavailable("blinked"), Unavailable("blinked"), Unavailable("blinked")])
    ledger.queue.append(run)
    bench = await start()
    room = await running(bench, run.run_id)
    await eventually(lambda: len(ledger.asked_for(Renew)) > 5)
    assert room.running is not None
    assert writes(ledger, run.run_id) == 0


async def test_a_lost_verdict_kills_at_once_and_nothing_is_written(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("sleep 100", "echo never")
    ledger.queue.append(run)
    bench = await start()
    room = await running(bench, run.run_id)
    ledger.verdicts[run.run_id] = Verdict.LOST
    await eventually(lambda: room.left)
    assert room.killed == 1
    assert writes(ledger, run.run_id) == 0


async def test_a_lease_that_nobody_renews_ends_the_step_before_the_ledger_thinks_so(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("sleep 100", lease_s=0.5)
    ledger.script["renew"].extend([SILENCE] * 100)
    ledger.queue.append(run)
    bench = await start()
    room = await running(bench, run.run_id)
    await eventually(lambda: room.left)
    assert room.killed == 1
    assert writes(ledger, run.run_id) == 0


async def test_a_result_whose_recording_timed_out_is_sent_again_and_counts_once(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("exit 3")
    ledger.script["finish_step"].append(SILENCE)
    ledger.queue.append(run)
    await start()
    await eventually(lambda: len(ledger.asked_for(FinishStep, run.run_id)) == 2)
    assert ledger.outcomes(run) == [Exited(exit_code=3)]
    first, second = ledger.asked_for(FinishStep, run.run_id)
    assert first == second


async def test_a_refused_result_is_the_last_word_about_a_run(start: StartBench, ledger: ScriptedLedger) -> None:
    before = metrics.STALE_FENCE._value.get()
    run = grant("echo a", "echo b")
    ledger.script["finish_step"].append(LeaseLost("the fence is 2"))
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: bench.rooms.rooms and bench.rooms.rooms[0].left)
    assert writes(ledger, run.run_id) == 1
    assert [command.script for command in bench.rooms.rooms[0].commands] == ["echo a"]
    assert metrics.STALE_FENCE._value.get() == before + 1


async def test_a_late_result_is_no_stale_fence(start: StartBench, ledger: ScriptedLedger) -> None:
    before = metrics.STALE_FENCE._value.get()
    run = grant("echo a")
    ledger.script["finish_step"].append(LateResult("the run is cancelled"))
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: bench.rooms.rooms and bench.rooms.rooms[0].left)
    assert metrics.STALE_FENCE._value.get() == before


async def test_a_command_of_a_run_that_was_lost_at_its_start_never_runs(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("echo a")
    ledger.script["start_step"].append(LeaseLost("the fence is 2"))
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: bench.rooms.rooms and bench.rooms.rooms[0].left)
    assert bench.rooms.rooms[0].commands == []


async def test_a_write_that_the_ledger_never_takes_is_given_up_and_the_lease_left_to_expire(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("echo a")
    ledger.script["finish_step"].extend([Internal("a bug")] * 10)
    ledger.queue.append(run)
    bench = await start()
    await eventually(lambda: bench.rooms.rooms and bench.rooms.rooms[0].left)
    assert len(ledger.asked_for(FinishStep, run.run_id)) == 4
    assert ledger.asked_for(Release, run.run_id) == []


async def test_a_cancel_verdict_kills_the_command_and_ends_the_run(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("sleep 100", "echo never")
    ledger.queue.append(run)
    bench = await start()
    await running(bench, run.run_id)
    ledger.verdicts[run.run_id] = Verdict.CANCEL
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [Cancelled()]


async def test_a_cancel_wakes_the_worker_between_heartbeats(start: StartBench, ledger: ScriptedLedger) -> None:
    run, other = grant("sleep 100"), grant("sleep 100")
    ledger.queue.extend([run, other])
    bench = await start(heartbeat_s=60)
    await running(bench, run.run_id)
    ledger.verdicts[run.run_id] = Verdict.CANCEL
    await ledger.wake(run.run_id)
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [Cancelled()]
    assert bench.rooms.running(other.run_id)


async def test_a_cancel_that_comes_with_a_recorded_result_stops_the_next_step(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("echo a", "echo never")
    ledger.script["start_step"].append(Done())
    ledger.queue.append(run)
    ledger.script["finish_step"].append(Done(verdict=Verdict.CANCEL))
    bench = await start()
    await eventually(lambda: len(ledger.asked_for(FinishStep, run.run_id)) == 2)
    assert ledger.outcomes(run) == [Cancelled()]
    assert [command.script for command in bench.rooms.rooms[0].commands] == ["echo a"]
    assert ledger.asked_for(StartStep, run.run_id)


async def test_a_run_granted_again_to_the_same_worker_waits_for_the_old_hold_to_clear_up(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    run = grant("sleep 100")
    ledger.queue.append(run)
    bench = await start(poll_s=0.05)
    room = await running(bench, run.run_id)
    ledger.verdicts[run.run_id] = Verdict.LOST
    await eventually(lambda: room.left)
    del ledger.verdicts[run.run_id]
    ledger.queue.append(run.model_copy(update={"fence": 2, "attempt": 2}))
    again = await running(bench, run.run_id)
    assert again is not room
