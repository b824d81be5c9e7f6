"""A runner is killed in the middle of a run; another goes on after the last recorded step."""

import signal

from caisson.client.models import Run
from tests.support.planes import Plane


async def kill_during_second_step(plane: Plane, run: Run) -> None:
    started = await plane.until(run.id, "run.started")
    await plane.until(run.id, "step.started", index=1)
    await plane.stack.kill("runner", plane.place_of(str(started.data["worker"])), signal.SIGKILL)


async def test_the_run_finishes_on_another_runner_with_each_result_once(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo first", "sleep 1; echo second", "ls; echo third"])

    await kill_during_second_step(plane, run)
    run = await plane.acme.wait(run.id, timeout_s=30)

    assert run.succeeded, run
    assert run.attempt == 2
    assert [step.stdout.text for step in run.steps if step.stdout] == ["first\n", "second\n", "third\n"]
    told = [event async for event in plane.acme.events(run.id)]
    requeued = next(event for event in told if event.type == "run.requeued")
    assert requeued.data["reason"] == "worker_lost"
    assert requeued.data["workspace_lost"] is True, "the next worker starts in an empty workspace and says so"
    assert [event.type for event in told].count("step.finished") == 3


async def test_a_step_that_must_not_run_twice_ends_unknown(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo first", "sleep 30"], on_lost="stop")

    await kill_during_second_step(plane, run)
    run = await plane.acme.wait(run.id, timeout_s=30)

    assert run.status == "failed"
    assert run.error["code"] == "step_unknown"
    assert [step.status for step in run.steps] == ["succeeded", "unknown"]


async def test_a_draining_runner_gives_its_run_back_at_once(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["sleep 2; echo done"])
    started = await plane.until(run.id, "run.started")
    await plane.until(run.id, "step.started")

    await plane.stack.kill("runner", plane.place_of(str(started.data["worker"])), signal.SIGTERM)
    run = await plane.acme.wait(run.id, timeout_s=30)

    assert run.succeeded, run
    assert run.attempt == 1, "draining costs no attempt"
