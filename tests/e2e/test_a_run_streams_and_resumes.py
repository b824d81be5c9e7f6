"""A reader sees output while the command runs, loses its connection, and misses nothing."""

from caisson.client.models import RunEvent
from tests.support.planes import Plane


async def test_output_arrives_before_the_step_has_finished(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo early; sleep 1; echo late"])

    kinds = [(event.type, event.data.get("text")) async for event in plane.acme.events(run.id)]

    assert kinds.index(("step.output", "early\n")) < kinds.index(("step.finished", None))
    assert kinds[-1][0] == "run.finished"


async def test_a_reader_resumes_after_its_last_event_without_a_gap(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["echo one", "sleep 0.5; echo two", "echo three"])
    before: list[RunEvent] = []
    async for event in plane.acme.events(run.id):
        if event.durable:
            before.append(event)
        if event.type == "step.finished":
            break

    after = [event async for event in plane.acme.events(run.id, after=before[-1].seq) if event.durable]

    numbers = [event.seq for event in before + after]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [event.type for event in before + after].count("step.finished") == 3


async def test_a_late_reader_gets_everything_from_the_start(plane: Plane) -> None:
    step = await plane.acme.exec("true")

    told = [event.type async for event in plane.acme.events(step.run_id)]

    assert told == ["run.queued", "run.started", "step.started", "step.finished", "run.finished"]


async def test_a_reader_follows_across_a_restart_of_the_gateway(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["sleep 0.5", "sleep 0.5", "sleep 0.5", "echo done"])
    told: list[int] = []

    async for event in plane.acme.events(run.id):
        if event.seq is not None:
            told.append(event.seq)
        if event.seq == 3:
            await plane.stack.kill("gateway")

    assert told == list(range(1, len(told) + 1))
    assert (await plane.acme.wait(run.id, timeout_s=20)).succeeded
