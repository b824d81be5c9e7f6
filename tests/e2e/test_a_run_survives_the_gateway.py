"""The gateway is killed between `202` and the result."""

import signal

from tests.support.planes import Plane


async def test_an_accepted_run_finishes(plane: Plane) -> None:
    runs = [await plane.acme.create_run(commands=["sleep 0.3; echo done"]) for _ in range(5)]

    await plane.stack.kill("gateway", 0, signal.SIGKILL)

    for run in runs:
        finished = await plane.acme.wait(run.id, timeout_s=30)
        assert finished.succeeded, finished
        assert finished.steps[0].stdout is not None
        assert finished.steps[0].stdout.text == "done\n"


async def test_everything_is_killed_at_once_and_the_run_finishes(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo first", "sleep 1; echo second"])
    await plane.until(run.id, "step.started", index=1)

    for name in ("runner", "gateway", "proxy", "nats", "postgres"):
        for index in range(len(plane.stack.pids(name))):
            await plane.stack.kill(name, index, signal.SIGKILL)
    await plane.stack.ready()

    finished = await plane.acme.wait(run.id, timeout_s=30)
    assert finished.succeeded, finished
    assert [step.stdout.text for step in finished.steps if step.stdout] == ["first\n", "second\n"]
