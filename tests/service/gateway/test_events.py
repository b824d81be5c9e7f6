"""A reader of a run's events gets every durable one, in order, from wherever it left off; live output in between."""

import asyncio

import asyncpg
import httpx
import pytest

from tests.support.product import submit, the_run
from tests.support.sse import Reader, events_of
from tests.support.worker import Worker

ONE_STEP = ["run.queued", "run.started", "step.started", "step.finished", "run.finished"]

BAD_PLACES = [
    ("-1", "negative"),
    ("1.5", "no whole number"),
    ("x", "no number"),
    ("\u00b3", "a digit of another kind"),
    ("9" * 10, "larger than any"),
    ("6", "an event that this run does not have"),
]


async def test_a_reader_that_comes_late_gets_everything_from_the_start(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take(), stdout="42\n")
    async with events_of(product, run_id) as reader:
        headers = reader.response.headers
        assert headers["content-type"].startswith("text/event-stream")
        assert "no-transform" in headers["cache-control"]
        assert headers["x-accel-buffering"] == "no"
        events = await reader.rest()
    assert [event.type for event in events] == ONE_STEP
    assert [event.id for event in events] == [1, 2, 3, 4, 5]
    assert {event.data["run_id"] for event in events} == {run_id}
    assert events[-1].data["status"] == "succeeded"
    finished = events[3].data
    assert (finished["stdout"]["bytes"], "text" in finished["stdout"]) == (3, False)


@pytest.mark.parametrize("after", [1, 3, 4])
async def test_a_reader_goes_on_after_the_last_event_it_has_seen(
    product: httpx.AsyncClient, worker: Worker, after: int
) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    async with events_of(product, run_id, after=after) as reader:
        events = await reader.rest()
    assert [event.id for event in events] == list(range(after + 1, 6))


async def test_a_reader_that_has_seen_the_end_is_told_that_nothing_follows(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    again = await product.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": "5"})
    assert (again.status_code, again.content) == (204, b"")


@pytest.mark.parametrize(("place", "reason"), BAD_PLACES)
async def test_a_place_that_is_no_event_of_the_run_is_refused(
    product: httpx.AsyncClient, worker: Worker, place: str, reason: str
) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    refused = await product.get(f"/v1/runs/{run_id}/events", headers={b"Last-Event-ID": place.encode()})
    assert refused.status_code == 422, reason
    assert [error["field"] for error in refused.json()["errors"]] == ["Last-Event-ID"]


async def test_an_empty_place_means_from_the_start(product: httpx.AsyncClient, worker: Worker) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    async with product.stream("GET", f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": ""}) as response:
        assert [event.id for event in await Reader(response).rest()] == [1, 2, 3, 4, 5]


async def test_events_beyond_retention_are_gone_and_the_run_is_pointed_at(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    await ledger.execute("DELETE FROM ledger.events WHERE run_id = $1 AND seq < 4", run_id)
    for headers in ({}, {"Last-Event-ID": "2"}):
        gone = await product.get(f"/v1/runs/{run_id}/events", headers=headers)
        assert (gone.status_code, gone.json()["code"]) == (410, "gone")
        assert f"/v1/runs/{run_id}" in gone.json()["detail"]
    async with events_of(product, run_id, after=4) as reader:
        assert [event.id for event in await reader.rest()] == [5]


async def test_live_output_stands_between_the_start_and_the_end_of_its_step(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product, "one", "two")
    async with events_of(product, run_id) as reader:
        grant = await worker.take()
        await reader.until(lambda event: event.type == "run.started")
        for place in (0, 1):
            if place == 0:
                await worker.start(grant)
            for number, text in enumerate(("a", "é😀", "c\n")):
                await worker.say(grant, text, place=place, offset=number)
            await worker.finish(grant, place, start_next=place == 0, finish_run=place == 1)
        events = await reader.rest()
    told = [(event.type, event.data.get("text")) for event in events if event.type.startswith("step.")]
    output = [("step.output", text) for text in ("a", "é😀", "c\n")]
    assert told == [("step.started", None), *output, ("step.finished", None)] * 2
    assert all((event.id is None) == (event.type == "step.output") for event in events)
    assert [event.id for event in events if event.id] == list(range(1, 8))


async def test_a_reader_in_step_with_the_run_is_woken_by_each_event(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product)
    async with events_of(product, run_id) as reader:
        grant = await worker.take()
        await worker.start(grant)
        await asyncio.wait_for(reader.until(lambda event: event.type == "step.started"), 0.8)
        await worker.say(grant, "now")
        heard = await asyncio.wait_for(reader.until(lambda event: event.type == "step.output"), 0.8)
        assert heard.data == {"step_id": grant.steps[0].step_id, "stream": "stdout", "offset": 0, "text": "now"}
        await worker.finish(grant, finish_run=True)
        await asyncio.wait_for(reader.rest(), 0.8)
    assert reader.comments == [": caisson"]


async def test_a_long_history_is_told_at_once_and_without_gaps(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product)
    grant = await worker.take()
    await ledger.execute(
        "INSERT INTO ledger.events (run_id, seq, type, data, published_at)"
        " SELECT $1, seq, 'security.proxy_rewrite', '{}', now() FROM generate_series(3, 2_102) seq",
        run_id,
    )
    await ledger.execute("UPDATE ledger.runs SET next_seq = 2_103 WHERE run_id = $1", run_id)
    await worker.work(grant)
    async with events_of(product, run_id) as reader:
        events = await asyncio.wait_for(reader.rest(), 2)
    assert [event.id for event in events] == list(range(1, 2_106))


async def test_many_readers_see_the_same_and_one_that_leaves_cancels_nothing(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product)
    async with events_of(product, run_id) as leaving:
        await leaving.next()

    async def read() -> list[int | None]:
        async with events_of(product, run_id) as reader:
            return [event.id for event in await reader.rest()]

    readers = [asyncio.create_task(read()) for _ in range(8)]
    grant = await worker.take()
    await worker.work(grant)
    assert await asyncio.gather(*readers) == [[1, 2, 3, 4, 5]] * 8
    assert (await the_run(product, run_id))["status"] == "succeeded"
