"""A request gets exactly one typed reply or a typed error; a fact counts once it is acknowledged."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from caisson.common import streams, subjects
from caisson.common.bus import Bus
from caisson.common.errors import (
    Internal,
    InvalidInput,
    LeaseLost,
    Misconfigured,
    PayloadTooLarge,
    TimedOut,
    Unavailable,
)
from caisson.common.ids import Ids, RunId, TenantId
from caisson.common.leases import Claim, Done, FinishRun, Grants, Holding, Release, StartStep
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import EVENTS_STREAM
from caisson.stack.nats import SERVICES, EmbeddedNats
from tests.support.eventually import eventually
from tests.support.worker import connected_worker

CLAIM = Claim(worker_id="w-1", slots=1)
RELEASE = Release(holding=Holding(worker_id="w-1", run_id="run_1", fence=1))
QUEUED = subjects.event("run.queued", Ids(tenant=TenantId("acme"), run=RunId("run_1")))


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedNats]:
    """A server on which nobody else answers."""
    folder: Path = tmp_path_factory.mktemp("bus")
    nats = EmbeddedNats(folder, passwords={name: secrets.token_hex() for name in SERVICES})
    await nats.start()
    yield nats
    await nats.stop()


@pytest.fixture
async def answering(server: EmbeddedNats) -> AsyncIterator[Bus]:
    """The side that answers, with the gateway's rights."""
    settings = ServiceSettings(nats_url=server.url, nats_user="gateway", nats_password=server.passwords["gateway"])
    bus = Bus(settings, service="gateway", on_closed=lambda: None)

    async def broken(_: Claim) -> Grants:
        raise KeyError("a secret of the inside")

    async def refusing(_: Release) -> Done:
        raise LeaseLost("gone", field="fence")

    async def misshapen(_: FinishRun) -> Done:
        return Done.model_validate({"verdict": "of another form"})

    ending = asyncio.Event()

    async def silent(_: StartStep) -> Done:
        await ending.wait()
        return Done()

    bus.serve(subjects.LEDGER_CLAIM, Claim, broken)
    bus.serve(subjects.LEDGER_RELEASE, Release, refusing)
    bus.serve(subjects.LEDGER_FINISH_RUN, FinishRun, misshapen)
    bus.serve(subjects.LEDGER_START_STEP, StartStep, silent)
    await bus.start()
    yield bus
    ending.set()
    await bus.stop()


@pytest.fixture
async def asking(server: EmbeddedNats, answering: Bus) -> AsyncIterator[Bus]:
    async with connected_worker(server) as worker:
        yield worker.bus


async def test_an_error_arrives_as_what_it_was_and_a_bug_tells_nothing_of_the_inside(asking: Bus) -> None:
    with pytest.raises(LeaseLost) as refused:
        await asking.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=5)
    assert [(field.field, field.message) for field in refused.value.fields] == [("fence", "gone")]
    with pytest.raises(Internal) as failed:
        await asking.call(subjects.LEDGER_CLAIM, CLAIM, Grants, timeout_s=5)
    assert "secret" not in failed.value.detail


async def test_a_reply_that_cannot_be_made_is_no_fault_of_the_request(asking: Bus) -> None:
    with pytest.raises(Internal):
        await asking.call(subjects.LEDGER_FINISH_RUN, FinishRun(holding=RELEASE.holding), Done, timeout_s=5)


async def test_a_request_of_another_form_is_refused_and_a_reply_of_another_form_is_not_believed(asking: Bus) -> None:
    with pytest.raises(InvalidInput):
        await asking.call(subjects.LEDGER_CLAIM, RELEASE, Grants, timeout_s=5)
    raw = await asking.connection.request(str(subjects.LEDGER_CLAIM), b"\xff", timeout=5)
    assert b'"code":"invalid_input"' in raw.data


async def test_nobody_there_no_answer_and_too_much_are_three_different_errors(asking: Bus) -> None:
    with pytest.raises(Unavailable, match="nobody serves"):
        await asking.call(subjects.LEDGER_RENEW, CLAIM, Grants, timeout_s=5)
    start = StartStep(holding=RELEASE.holding, step_id="stp_1")
    with pytest.raises(TimedOut):
        await asking.call(subjects.LEDGER_START_STEP, start, Done, timeout_s=0.1)
    huge = Claim(worker_id="w" * (9 << 20), slots=1)
    with pytest.raises(PayloadTooLarge):
        await asking.call(subjects.LEDGER_CLAIM, huge, Grants, timeout_s=5)


async def test_a_bus_that_stops_takes_no_more_and_answers_what_it_took(server: EmbeddedNats) -> None:
    settings = ServiceSettings(nats_url=server.url, nats_user="gateway", nats_password=server.passwords["gateway"])
    bus = Bus(settings, service="gateway", on_closed=lambda: None)
    taken, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Release) -> Done:
        taken.set()
        await goes_on.wait()
        return Done()

    bus.serve(subjects.LEDGER_RELEASE, Release, slow)
    await bus.start()
    async with connected_worker(server) as worker:
        answer = asyncio.create_task(worker.bus.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=10))
        await taken.wait()
        stopping = asyncio.create_task(bus.stop())

        async def takes_no_more() -> bool:
            with pytest.raises((Unavailable, TimedOut)) as refused:
                await worker.bus.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=0.2)
            return isinstance(refused.value, Unavailable)

        await eventually(takes_no_more)
        assert not stopping.done()
        goes_on.set()
        assert await answer == Done()
        await stopping


async def test_a_hundred_requests_are_answered_at_once(server: EmbeddedNats) -> None:
    settings = ServiceSettings(nats_url=server.url, nats_user="gateway", nats_password=server.passwords["gateway"])
    bus = Bus(settings, service="gateway", on_closed=lambda: None)
    under_way = most = 0

    async def counted(_: Release) -> Done:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        return Done()

    bus.serve(subjects.LEDGER_RELEASE, Release, counted)
    await bus.start()
    async with connected_worker(server) as worker:
        calls = [worker.bus.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=10) for _ in range(100)]
        assert await asyncio.gather(*calls) == [Done()] * 100
    assert 8 < most <= 64
    await bus.stop()


async def test_a_fact_without_a_stream_is_not_published_and_one_that_is_repeated_is_stored_once(
    answering: Bus,
) -> None:
    with pytest.raises(Unavailable):
        await answering.publish_event(QUEUED, b"{}", message_id="1")
    await streams.declare(answering.jetstream)
    await streams.declare(answering.jetstream)
    for message_id in ("1", "1", "2"):
        await answering.publish_event(QUEUED, b"{}", message_id=message_id)
    assert (await answering.jetstream.stream_info(EVENTS_STREAM)).state.messages == 2


async def test_a_stream_that_differs_from_its_declaration_is_named_with_both_values(answering: Bus) -> None:
    await streams.declare(answering.jetstream)
    declared = (await answering.jetstream.stream_info(EVENTS_STREAM)).config
    await answering.jetstream.update_stream(replace(declared, max_age=600))
    with pytest.raises(Misconfigured, match=r"EVENTS: max_age is 600.*, declared 86400"):
        await streams.declare(answering.jetstream)
    await answering.jetstream.update_stream(declared)


async def test_a_bus_whose_server_is_away_says_so_and_connects_again(server: EmbeddedNats, asking: Bus) -> None:
    await asking.check()
    await server.stop()
    with pytest.raises(Unavailable):
        await asking.check()
    with pytest.raises(Unavailable):
        await asking.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=0.2)
    await server.start()
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(_until_answered(asking), 10)


async def _until_answered(bus: Bus) -> None:
    while True:
        try:
            await bus.call(subjects.LEDGER_RELEASE, RELEASE, Done, timeout_s=1)
        except Unavailable:
            await asyncio.sleep(0.05)
