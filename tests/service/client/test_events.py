"""Following events across connections that break."""

import asyncio

import pytest
from starlette.responses import Response

from caisson.client.client import Client
from caisson.client.errors import EventsExpired, NotFound, ProtocolViolation, Unavailable
from caisson.client.following import Follower
from caisson.client.models import RunEvent
from caisson.client.retrying import Retries
from tests.service.client.conftest import QUICK
from tests.support.cutting_relay import CuttingRelay
from tests.support.eventually import eventually
from tests.support.fake_api import PLATFORM_KEY, FakeApi
from tests.support.fake_api_answers import RawStream, problem
from tests.support.played_runs import Behaviour, durable, frame

FINISHED = durable(9, "run.finished", status="succeeded")
RUN = "run_1"


async def follow(client: Client, *, after: int | str | None = None) -> list[RunEvent]:
    return [event async for event in client.events(RUN, after=after)]


def cursors(api: FakeApi) -> list[str | None]:
    """What each connection asked for."""
    return [request.headers.get("last-event-id") for request in api.seen("GET", f"/v1/runs/{RUN}/events")]


STREAMS: list[tuple[str, list[RawStream], list[str | None]]] = [
    (
        "after a break it asks for what comes after the last durable event, whatever live output came since",
        [RawStream(durable(7, "step.started") + frame("step.output", {}), clean=False), RawStream(FINISHED)],
        [None, "7"],
    ),
    (
        "a connection that breaks before any event keeps the id",
        [
            RawStream(durable(7, "step.started"), clean=False),
            RawStream(b": caisson\n\n", clean=False),
            RawStream(b"", clean=False),
            RawStream(b"id: 8\nevent: step.finished\ndata: {}\n", clean=False),
            RawStream(FINISHED),
        ],
        [None, "7", "7", "7", "7"],
    ),
    (
        "an empty id clears the cursor",
        [
            RawStream(durable(7, "step.started"), clean=False),
            RawStream(b"id:\n\n", clean=False),
            RawStream(FINISHED),
        ],
        [None, "7", None],
    ),
    (
        "an empty id on an event clears it, too",
        [RawStream(durable(7, "step.started") + b"id:\nevent: a.b\ndata: {}\n\n", clean=False), RawStream(FINISHED)],
        [None, None],
    ),
]


@pytest.mark.parametrize(("streams", "asked"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
async def test_a_broken_stream_is_resumed(
    client: Client, api: FakeApi, streams: list[RawStream], asked: list[str | None]
) -> None:
    api.streams.extend(streams)
    events = await follow(client)
    assert events[-1].type == "run.finished"
    assert cursors(api) == asked


async def test_resuming_begins_after_the_number_given(client: Client, api: FakeApi) -> None:
    api.streams.extend([RawStream(b"", clean=False), RawStream(FINISHED)])
    assert [event.seq for event in await follow(client, after=41)] == [9]
    assert cursors(api) == ["41", "41"]


async def test_durable_events_have_a_number_and_live_output_has_none(client: Client, api: FakeApi) -> None:
    chunk = {"step_id": "stp_1", "stream": "stdout", "offset": 0, "text": "hi"}
    api.streams.append(RawStream(durable(1, "run.queued") + frame("step.output", chunk) + FINISHED))
    events = await follow(client)
    assert [(event.type, event.seq, event.durable) for event in events] == [
        ("run.queued", 1, True),
        ("step.output", None, False),
        ("run.finished", 9, True),
    ]
    assert events[1].data == chunk


async def test_events_beyond_retention_are_a_typed_error(client: Client, api: FakeApi) -> None:
    api.streams.append(problem(410, "gone", f"the run itself is at /v1/runs/{RUN}"))
    with pytest.raises(EventsExpired, match=RUN):
        await follow(client, after=1)
    assert len(cursors(api)) == 1


async def test_what_is_wrong_for_good_is_not_tried_again(client: Client, api: FakeApi) -> None:
    api.streams.append(problem(404, "not_found", "no such run"))
    with pytest.raises(NotFound):
        await follow(client)
    api.streams.append(Response("<html>", media_type="text/html"))
    with pytest.raises(ProtocolViolation, match="event stream"):
        await follow(client)
    api.streams.append(RawStream(b"data: not json\n\n"))
    with pytest.raises(ProtocolViolation, match="JSON"):
        await follow(client)
    assert len(cursors(api)) == 3


async def test_refusals_that_pass_are_waited_for(client: Client, api: FakeApi) -> None:
    api.streams.extend([Response(status_code=502), problem(503, "unavailable", "no"), RawStream(FINISHED)])
    assert len(await follow(client)) == 1


async def test_without_progress_it_gives_up(api: FakeApi) -> None:
    retries = Retries(first_delay_s=0.01, max_delay_s=0.02, stream_give_up_after_s=0.1)
    api.streams.extend(problem(503, "unavailable", "no") for _ in range(100))
    async with Client(api.url, PLATFORM_KEY, tenant="acme", user="u", retries=retries) as client:
        with pytest.raises(Unavailable):
            await follow(client)


async def test_comments_alone_keep_a_stream_and_silence_ends_it(client: Client, api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True)
    run = await client.create_run(commands=["sleep"])
    follower = Follower(client._transport, f"/v1/runs/{run.id}", after=None, silence_limit_s=0.1)
    reading = asyncio.create_task(_collect(follower))
    path = f"/v1/runs/{run.id}/events"
    await eventually(lambda: len(api.seen("GET", path)) >= 3)
    assert {request.headers.get("last-event-id") for request in api.seen("GET", path)[1:]} == {"3"}
    await client.cancel(run.id)
    assert [event.seq for event in await reading] == [1, 2, 3, 4, 5]


async def test_the_end_of_a_finished_run_is_an_end_with_or_without_news(client: Client, api: FakeApi) -> None:
    run = await client.create_run(commands=["true"])
    events = [event async for event in client.events(run.id)]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert [event async for event in client.events(run.id, after=5)] == []
    api.streams.extend([RawStream(b": caisson\n\n"), RawStream(b": caisson\n\n")])
    assert [event async for event in client.events(run.id, after=5)] == []


async def test_a_gateway_that_stops_while_the_run_goes_on_is_not_an_end(client: Client, api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True)
    run = await client.create_run(commands=["sleep"])
    api.streams.extend([RawStream(b": caisson\n\n")] * 3)
    reading = asyncio.create_task(_events_of(client, run.id))
    await eventually(api.runs[run.id].watched.is_set)
    await client.cancel(run.id)
    assert [event.seq for event in await reading] == [1, 2, 3, 4, 5]


async def test_no_durable_event_is_missed_or_repeated_over_cut_connections(api: FakeApi) -> None:
    for number in range(20):
        api.behaviours[f"echo {number}"] = Behaviour(watched=True, stdout=b"x")
    async with (
        CuttingRelay(api.url) as relay,
        Client(relay.url, PLATFORM_KEY, tenant="acme", user="u", retries=QUICK) as client,
    ):
        run = await client.create_run(commands=[f"echo {number}" for number in range(20)])
        seen = []
        async for event in client.events(run.id):
            if event.durable:
                seen.append(event.seq)
            if event.type == "step.started":
                relay.cut()
        assert seen == list(range(1, len(api.runs[run.id].events) + 1))


async def _collect(follower: Follower) -> list[RunEvent]:
    return [event async for event in follower.events()]


async def _events_of(client: Client, run_id: str) -> list[RunEvent]:
    return [event async for event in client.events(run_id)]
