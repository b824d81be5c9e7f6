"""A worker asks for work when it may have some, and only then."""

import asyncio

from caisson.common.leases import Claim, Release, StartStep
from caisson.common.outcome import Exited
from tests.service.runner.conftest import StartBench
from tests.support.eventually import eventually
from tests.support.fake_rooms import FakeRooms
from tests.support.scripted_ledger import ScriptedLedger, grant


async def test_a_doorbell_is_answered_without_waiting_for_the_poll(start: StartBench, ledger: ScriptedLedger) -> None:
    bench = await start(poll_s=60)
    await eventually(lambda: ledger.asked_for(Claim))
    run = grant("echo hello")
    ledger.queue.append(run)
    await ledger.ring()
    await eventually(lambda: ledger.ended(run))
    assert ledger.outcomes(run) == [Exited(exit_code=0)]
    assert ledger.finished[run.steps[0].step_id].stdout.text == "hello\n"
    await eventually(lambda: bench.rooms.rooms[0].left)


async def test_a_lost_doorbell_costs_a_poll_interval(start: StartBench, ledger: ScriptedLedger) -> None:
    await start(poll_s=0.05)
    await eventually(lambda: ledger.asked_for(Claim))
    run = grant("echo hello")
    ledger.queue.append(run)
    await eventually(lambda: ledger.ended(run))


async def test_a_one_step_run_costs_two_calls_after_the_claim(start: StartBench, ledger: ScriptedLedger) -> None:
    run = grant("echo hello")
    ledger.queue.append(run)
    await start(heartbeat_s=60)
    await eventually(lambda: ledger.ended(run))
    asked = [type(request).__name__ for request in ledger.asked if not isinstance(request, Claim)]
    assert [name for name in asked if name != "Renew"] == ["StartStep", "FinishStep"]


async def test_a_worker_asks_for_its_free_slots_and_again_when_one_gets_free(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    long, second, third = grant("sleep 100"), grant("echo a"), grant("echo b")
    ledger.queue.extend([long, second, third])
    bench = await start(slots=2)
    await eventually(lambda: ledger.ended(third))
    assert bench.rooms.running(long.run_id)
    slots = [request.slots for request in ledger.asked_for(Claim) if isinstance(request, Claim)]
    assert slots[0] == 2
    assert set(slots[1:]) == {1}


async def test_a_large_worker_keeps_a_place_for_tenants_that_have_nothing_running(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    await start(slots=8)
    (first, *_) = await eventually(lambda: ledger.asked_for(Claim))
    assert isinstance(first, Claim)
    assert (first.slots, first.reserve) == (8, 1)


async def test_a_host_without_a_sandbox_takes_nothing_and_says_why(start: StartBench, ledger: ScriptedLedger) -> None:
    rooms = FakeRooms()
    rooms.fault = "bubblewrap is not installed"
    ledger.queue.append(grant("echo hello"))
    bench = await start(rooms=rooms, poll_s=0.02)
    assert (await bench.failing())["sandbox"] == "bubblewrap is not installed"
    await ledger.ring()
    assert ledger.asked_for(Claim) == []
    rooms.fault = None
    await eventually(lambda: ledger.asked_for(Claim))
    assert "sandbox" not in await bench.failing()


async def test_worker_ids_differ_between_starts_of_the_same_name(start: StartBench, ledger: ScriptedLedger) -> None:
    await start(name="same")
    await start(name="same")

    def workers() -> set[str]:
        return {claim.worker_id for claim in ledger.asked_for(Claim) if isinstance(claim, Claim)}

    await eventually(lambda: len(workers()) == 2)
    assert all(worker.startswith("same-") for worker in workers())


async def test_a_ready_worker_passes_every_check(start: StartBench, ledger: ScriptedLedger) -> None:
    bench = await start()

    async def ready() -> bool:
        return await bench.failing() == {}

    await eventually(ready)


async def test_what_a_claim_in_flight_brings_to_a_draining_worker_goes_back(
    start: StartBench, ledger: ScriptedLedger
) -> None:
    ledger.held_back["claim"] = asyncio.Event()
    run = grant("echo hello")
    ledger.queue.append(run)
    bench = await start(heartbeat_s=60)
    await eventually(lambda: ledger.asked_for(Claim))
    draining = asyncio.create_task(bench.runner.drain())
    await eventually(bench.drains)
    ledger.held_back["claim"].set()
    await draining
    assert len(ledger.asked_for(Release, run.run_id)) == 1
    assert ledger.asked_for(StartStep, run.run_id) == []
    assert bench.rooms.rooms == []
