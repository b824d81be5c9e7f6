"""Gateways die, start again and work side by side; the ledger is one all the same."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import httpx
import pytest

from caisson.common.errors import LeaseLost, Unavailable
from caisson.stack.service import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import open_ledger, running
from tests.support.plane import TENANT, Plane
from tests.support.product import COPIES, submit, the_run
from tests.support.published import published_numbers
from tests.support.sse import events_of
from tests.support.worker import Worker

ORPHANED = """
    UPDATE ledger.runs SET status = 'running', fence = 1, lease_owner = 'gone', lease_expires_at = now(),
           request_id = 'req_' || run_id, started_at = now(), deadline_at = now() + interval '1 h'
    WHERE tenant_id = 'many'"""


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
        await eventually(lambda: is_published(plane, early, 2))
        assert not await is_published(plane, late, 2)
        await transaction.commit()
    await eventually(lambda: is_published(plane, late, 2))
    await asyncio.gather(*(plane.product.post(f"/v1/runs/{run_id}/cancel") for run_id in (early, late)))


async def is_published(plane: Plane, run_id: str, number: int) -> bool:
    return number in (await published_numbers(plane.ground.nats)).get(run_id, ())


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
        await eventually(lambda other=other: is_published(plane, other, 5))  # type: ignore[misc]


async def kill(gateway: ServiceProcess) -> None:
    assert gateway.process is not None
    gateway.process.kill()
    await gateway.process.wait()


async def test_two_gateways_publish_every_event_once_and_in_order_though_nats_is_killed_under_them(
    plane: Plane,
) -> None:
    second = plane.ground.gateway("second")
    async with running(second), plane.ground.client(second, tenant="globex") as other:
        runs = []
        for number in range(30):
            runs.append(await submit(other if number % 2 else plane.product))
            if number == 10:
                assert plane.ground.nats.process is not None
                plane.ground.nats.process.kill()
                await plane.ground.nats.process.wait()
            if number == 20:
                await plane.ground.nats.start()
        await work_off(plane.worker, len(runs))
        for run_id in runs:
            await eventually(lambda run_id=run_id: is_published(plane, run_id, 5), within_s=15)  # type: ignore[misc]
        numbers = await published_numbers(plane.ground.nats)
    assert {run_id: numbers[run_id] for run_id in runs} == {run_id: [1, 2, 3, 4, 5] for run_id in runs}


async def work_off(worker: Worker, count: int) -> None:
    """Carry runs to their end, through whatever outage."""
    done = 0
    deadline = asyncio.get_running_loop().time() + 20
    while done < count:
        assert asyncio.get_running_loop().time() < deadline
        try:
            for grant in await worker.claim(4):
                await worker.work(grant)
                done += 1
        except Unavailable:
            await asyncio.sleep(0.1)


async def test_two_reconcilers_requeue_a_lost_run_once(plane: Plane) -> None:
    second = plane.ground.gateway("second")
    async with running(second), open_ledger(plane.ground.database_url) as ledger:
        runs = [await submit(plane.product) for _ in range(20)]
        assert len(await plane.worker.claim(20)) == 20
        await ledger.execute("UPDATE ledger.runs SET lease_expires_at = now() WHERE status = 'running'")
        requeued = "SELECT attempt, status, count(*) FROM ledger.runs WHERE run_id = ANY($1) GROUP BY 1, 2"

        async def all_are_queued_for_the_second_time() -> bool:
            return [tuple(row) for row in await ledger.fetch(requeued, runs)] == [(2, "queued", 20)]

        await eventually(all_are_queued_for_the_second_time)
        told = "SELECT count(*) FROM ledger.events WHERE run_id = ANY($1) AND type = 'run.requeued'"
        assert await ledger.fetchval(told, runs) == 20
    await work_off(plane.worker, 20)


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


async def test_many_lost_runs_are_all_decided_in_the_first_pass(deserted: Plane) -> None:
    slow = deserted.ground.gateway("slow", GATEWAY_RECONCILE_S="30")
    async with open_ledger(deserted.ground.database_url) as ledger:
        async with running(slow), deserted.ground.client(slow, tenant="many") as product:
            await ledger.execute(COPIES, await submit(product), 249)
            await ledger.execute(ORPHANED)
        async with running(slow):
            requeued = (
                "SELECT count(*) FROM ledger.runs WHERE tenant_id = 'many' AND status = 'queued' AND attempt = 2"
            )

            async def all_are_requeued() -> bool:
                return bool(await ledger.fetchval(requeued) == 250)

            await eventually(all_are_requeued)
