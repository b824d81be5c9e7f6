"""A gateway dies, or its passes are far apart: what the ledger has promised holds all the same."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from time import monotonic

import httpx
import pytest

from caisson.common.errors import LeaseLost, Unavailable
from caisson.common.leases import Verdict
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import open_ledger, running
from tests.support.plane import TENANT, Plane
from tests.support.product import COPIES, cancel, submit, the_run
from tests.support.published import is_published
from tests.support.sse import events_of

ORPHANED = """
    UPDATE ledger.runs SET status = 'running', fence = 1, lease_owner = 'gone', lease_expires_at = now(),
           request_id = 'req_' || run_id, started_at = now(), deadline_at = now() + interval '1 h'
    WHERE tenant_id = 'many' AND status = 'queued'"""
REQUEUED = "SELECT count(*) FROM ledger.runs WHERE tenant_id = 'many' AND status = 'queued' AND attempt = 2"


async def test_an_event_whose_transaction_commits_late_is_published_all_the_same(plane: Plane) -> None:
    early, late = [await submit(plane.product) for _ in range(2)]
    tell = """
        WITH counted AS (
            UPDATE ledger.runs SET next_seq = next_seq + 1 WHERE run_id = $1 RETURNING next_seq - 1 AS seq
        )
        INSERT INTO ledger.events (run_id, seq, type, data) SELECT $1, seq, 'security.probe', '{}' FROM counted"""
    async with open_ledger(plane.ground.database_url) as ledger, ledger.acquire() as slow:
        transaction = slow.transaction()
        await transaction.start()
        await slow.execute(tell, late)
        await ledger.execute(tell, early)
        await eventually(lambda: is_published(plane.ground.nats, early, 2))
        assert not await is_published(plane.ground.nats, late, 2)
        await transaction.commit()
    await eventually(lambda: is_published(plane.ground.nats, late, 2))
    await asyncio.gather(*(plane.product.post(f"/v1/runs/{run_id}/cancel") for run_id in (early, late)))


async def test_a_gateway_that_is_killed_loses_nothing_that_it_accepted(plane: Plane) -> None:
    key = {"Idempotency-Key": secrets.token_hex()}
    plan = {"steps": [{"bash": {"command": "one"}}, {"bash": {"command": "two"}}]}
    accepted = await plane.product.post("/v1/runs", json=plan, headers=key)
    run_id = accepted.json()["id"]
    grant = await plane.worker.take()
    await plane.worker.start(grant)
    async with events_of(plane.product, run_id) as reader:
        seen = await reader.until(lambda event: event.type == "step.started")
        unpublished = [await submit(plane.product) for _ in range(3)]
        await kill(plane.gateway)
        with pytest.raises(httpx.HTTPError):
            await reader.rest()
    with pytest.raises(Unavailable):
        await plane.worker.finish(grant, start_next=True)
    await plane.gateway.start()

    await plane.worker.finish(grant, start_next=True)
    async with events_of(plane.product, run_id, after=seen.id) as reader:
        await plane.worker.finish(grant, 1, finish_run=True)
        events = await reader.rest()
    assert [event.id for event in events] == [4, 5, 6, 7]
    again = await plane.product.post("/v1/runs", json=plan, headers=key)
    assert (again.content, again.headers["idempotency-replayed"]) == (accepted.content, "true")
    for grant in await plane.worker.claim(8):
        await plane.worker.work(grant)
    for other in unpublished:
        assert (await the_run(plane.product, other))["status"] == "succeeded"
        await eventually(lambda other=other: is_published(plane.ground.nats, other, 5))  # type: ignore[misc]


async def kill(gateway: ServiceProcess) -> None:
    assert gateway.process is not None
    gateway.process.kill()
    await gateway.process.wait()


@pytest.fixture(scope="module")
async def deserted(servers: Plane) -> AsyncIterator[Plane]:
    """The same servers without their gateway, for stories that start one of their own."""
    await servers.gateway.stop()
    yield servers
    await servers.restore()


async def test_a_worker_that_falls_silent_loses_its_run_when_its_lease_is_over(deserted: Plane) -> None:
    brisk = deserted.ground.gateway("brisk", GATEWAY_LEASE_S="0.9", GATEWAY_HEARTBEAT_S="0.3")
    async with running(brisk), deserted.ground.client(brisk, tenant=TENANT) as product:
        run_id = await submit(product)
        grant = await deserted.worker.take()
        assert grant.lease_s == 0.9
        await deserted.worker.start(grant)
        successor = deserted.worker.named("successor")
        second = await successor.take()
        assert (second.run_id, second.fence, second.attempt) == (run_id, 2, 2)
        with pytest.raises(LeaseLost):
            await deserted.worker.finish(grant, finish_run=True)
        await successor.work(second)
        assert (await the_run(product, run_id))["status"] == "succeeded"


@pytest.fixture
async def unhurried(deserted: Plane) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway whose reconciler has made its first pass and makes no second one in the time of a story."""
    slow = deserted.ground.gateway("slow", GATEWAY_RECONCILE_S="60")
    async with running(slow), deserted.ground.client(slow, tenant="many") as product:
        yield product


async def test_what_a_reconciler_has_not_seen_yet_is_decided_all_the_same(
    deserted: Plane, unhurried: httpx.AsyncClient
) -> None:
    worker = deserted.worker
    silent, *runs = [await submit(unhurried) for _ in range(4)]
    grants = {grant.run_id: grant for grant in await worker.claim(4)}
    await worker.start(grants[silent])
    began = monotonic()
    await cancel(unhurried, silent)
    assert (await the_run(unhurried, silent, wait_s=5))["status"] == "cancelled"
    assert monotonic() - began < 2, "a cancel waits for no pass"

    started, *others = [grants[run_id] for run_id in runs]
    await worker.start(started)
    async with open_ledger(deserted.ground.database_url) as ledger:
        await ledger.execute("UPDATE ledger.runs SET lease_expires_at = now() WHERE status = 'running'")
    for write in (
        worker.start(others[0]),
        worker.start(started),
        worker.finish(started),
        worker.finish_run(others[1]),
    ):
        with pytest.raises(LeaseLost):
            await write
    assert await worker.renew(started, *others) == dict.fromkeys(runs, Verdict.LOST)
    for run_id in runs:
        assert (await the_run(unhurried, run_id))["status"] == "running", "until the next pass"
    await asyncio.gather(*(cancel(unhurried, run_id) for run_id in runs))


async def test_many_lost_runs_are_all_decided_in_one_pass(deserted: Plane) -> None:
    slow = deserted.ground.gateway("slow", GATEWAY_RECONCILE_S="60")
    async with open_ledger(deserted.ground.database_url) as ledger:
        async with running(slow), deserted.ground.client(slow, tenant="many") as product:
            await ledger.execute(COPIES, await submit(product), 249)
            await ledger.execute(ORPHANED)
        async with running(slow):
            assert await ledger.fetchval(REQUEUED) == 250, "the first pass is over when a gateway is ready"
