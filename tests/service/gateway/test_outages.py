"""Servers go away and come back. Callers are told to come back too, and what was accepted goes on."""

import asyncio
from dataclasses import replace

import pytest

from caisson.common.errors import Unavailable
from caisson.common.leases import Verdict
from caisson.common.subjects import CONTEXTS_STREAM, EVENTS_STREAM
from tests.support.eventually import eventually
from tests.support.gateway import open_ledger
from tests.support.plane import Plane
from tests.support.product import submit, the_run
from tests.support.proxy_view import watching
from tests.support.published import is_published, jetstream_of
from tests.support.sse import events_of


async def test_while_the_database_is_away_callers_are_told_to_come_back_and_then_everything_goes_on(
    plane: Plane,
) -> None:
    run_id = await submit(plane.product, "one", "two")
    grant = await plane.worker.take()
    await plane.worker.start(grant)
    await plane.postgres.stop()
    for method, path in (("POST", "/v1/runs"), ("GET", f"/v1/runs/{run_id}"), ("GET", "/v1/keys")):
        answer = await plane.product.request(method, path, json={"steps": [{"bash": {"command": "true"}}]})
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), path
        assert answer.headers["retry-after"] == "1"
    with pytest.raises(Unavailable):
        await plane.worker.finish(grant, start_next=True)
    status, failing = await plane.readiness()
    assert (status, "database" in failing) == (503, True)
    assert (await plane.product.get("/healthz")).status_code == 200, "the process turns all the same"

    await plane.postgres.start()
    await eventually(plane.is_ready, within_s=10)
    await plane.worker.finish(grant, start_next=True)
    await plane.worker.finish(grant, 1, finish_run=True)
    assert (await the_run(plane.product, run_id))["status"] == "succeeded"


async def test_a_listening_connection_that_is_cut_is_made_again(plane: Plane) -> None:
    listening = "SELECT pid FROM pg_stat_activity WHERE application_name = 'caisson-listen'"
    async with open_ledger(plane.ground.database_url) as ledger:
        before = await eventually(lambda: ledger.fetch(listening))
        assert await ledger.fetchval("SELECT pg_terminate_backend($1)", before[0]["pid"])
        run_id = await submit(plane.product)
        async with events_of(plane.product, run_id) as reader:
            await plane.worker.work(await plane.worker.take())
            assert [event.id for event in await asyncio.wait_for(reader.rest(), 4)] == [1, 2, 3, 4, 5], "by its poll"

        async def another() -> bool:
            found = await ledger.fetch(listening)
            return len(found) == 1 and found != before

        await eventually(another)


async def test_when_the_store_of_nats_is_wiped_streams_and_contexts_come_back_and_runs_go_on(plane: Plane) -> None:
    old = await submit(plane.product)
    grant = await plane.worker.take()
    await plane.worker.start(grant)
    await eventually(lambda: is_published(plane.ground.nats, old, 3))
    await plane.ground.nats.wipe()
    new = await submit(plane.product)
    await eventually(lambda: is_published(plane.ground.nats, new, 1), within_s=15)
    assert await plane.worker.renew(grant) == {old: Verdict.CONTINUE}
    async with watching(plane.ground.nats) as proxy:
        assert (await proxy.context(grant.request_id)).run_id == old
    await plane.worker.finish(grant, finish_run=True)
    await plane.worker.work(await plane.worker.take())
    for run_id in (old, new):
        assert (await the_run(plane.product, run_id))["status"] == "succeeded"
    assert await plane.is_ready()


async def test_the_streams_of_a_wiped_store_come_back_although_nobody_publishes(plane: Plane) -> None:
    await plane.ground.nats.wipe()

    async def are_there() -> bool:
        async with jetstream_of(plane.ground.nats) as jetstream:
            found = {stream.config.name for stream in await jetstream.streams_info()}
        return found == {EVENTS_STREAM, CONTEXTS_STREAM}

    await eventually(are_there, within_s=20)


async def test_a_claim_whose_context_cannot_be_made_known_gives_the_run_back(plane: Plane) -> None:
    runs = {await submit(plane.product) for _ in range(2)}
    async with jetstream_of(plane.ground.nats) as jetstream:
        declared = (await jetstream.stream_info(CONTEXTS_STREAM)).config
        await jetstream.update_stream(replace(declared, max_msg_size=1))
        try:
            with pytest.raises(Unavailable):
                await plane.worker.claim(2)
            for run_id in runs:
                run = await the_run(plane.product, run_id)
                assert (run["status"], run["attempt"]) == ("queued", 1)
        finally:
            await jetstream.update_stream(replace(declared, max_msg_size=-1))
    grants = await plane.worker.claim(2)
    assert {grant.run_id for grant in grants} == runs
    for grant in grants:
        await plane.worker.work(grant)
