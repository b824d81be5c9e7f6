"""Cancel reaches a run in every state, and a cancelled run never starts again."""

from time import monotonic

from tests.support.planes import Plane, text


async def test_a_running_command_is_killed_within_two_seconds(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo begun; trap '' TERM; sleep 600 & wait", "echo never"])
    await plane.until(run.id, "step.output")

    began = monotonic()
    await plane.acme.cancel(run.id)
    run = await plane.acme.wait(run.id, timeout_s=10)

    assert run.status == "cancelled"
    assert monotonic() - began < 5
    assert [step.status for step in run.steps] == ["cancelled", "cancelled"]
    assert run.steps[0].stdout is not None
    assert run.steps[0].stdout.text == "begun\n", "output before the cancel is kept"


async def test_cancelling_again_or_too_late_changes_nothing(plane: Plane) -> None:
    step = await plane.acme.exec("echo done")

    await plane.acme.cancel(step.run_id)
    await plane.acme.cancel(step.run_id)

    run = await plane.acme.get_run(step.run_id)
    assert run.succeeded
    assert text(step) == "done\n"


async def test_a_queued_run_is_cancelled_and_never_starts(plane: Plane) -> None:
    tenant = plane.client_of("waits-in-line")
    await tenant.put_tenant("waits-in-line", {"max_concurrency": 1})
    first = await tenant.create_run(commands=["sleep 1"])
    second = await tenant.create_run(commands=["echo never"])

    await tenant.cancel(second.id)
    await tenant.wait(first.id, timeout_s=20)

    told = [event.type async for event in tenant.events(second.id)]
    assert told == ["run.queued", "run.finished"]
    assert (await tenant.get_run(second.id)).status == "cancelled"
