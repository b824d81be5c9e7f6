"""Two gateways work side by side; the ledger is one all the same."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from caisson.common.errors import Unavailable
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import open_ledger, running
from tests.support.plane import Plane
from tests.support.product import COPIES, submit
from tests.support.published import is_published, published_numbers
from tests.support.worker import Worker


@pytest.fixture(scope="module")
async def second(servers: Plane) -> AsyncIterator[ServiceProcess]:
    """Another gateway beside the first."""
    another = servers.ground.gateway("second")
    async with running(another):
        yield another


async def test_two_gateways_publish_every_event_once_and_in_order_though_nats_is_killed_under_them(
    plane: Plane, second: ServiceProcess
) -> None:
    async with plane.ground.client(second, tenant="globex") as other:
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
            await eventually(lambda run_id=run_id: is_published(plane.ground.nats, run_id, 5), within_s=15)  # type: ignore[misc]
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


async def test_two_reconcilers_requeue_a_lost_run_once(plane: Plane, second: ServiceProcess) -> None:
    async with open_ledger(plane.ground.database_url) as ledger:
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


async def test_claims_through_two_gateways_never_exceed_a_tenants_concurrency_and_leave_no_slot_idle(
    plane: Plane, second: ServiceProcess
) -> None:
    async with (
        open_ledger(plane.ground.database_url) as ledger,
        plane.ground.client(second, tenant="many") as product,
    ):
        await product.put("/v1/tenants/many", json={"max_concurrency": 5})
        await ledger.execute(COPIES, await submit(product), 59)
        live = "SELECT count(*) FROM ledger.runs WHERE tenant_id = 'many' AND status = 'running'"
        granted: list[str] = []

        async def work(worker: Worker) -> None:
            while len(granted) < 60:
                for grant in await worker.claim(3):
                    granted.append(grant.run_id)
                    assert await ledger.fetchval(live) <= 5
                    await worker.work(grant)

        await asyncio.wait_for(asyncio.gather(*(work(plane.worker.named(f"w-{n}")) for n in range(8))), 30)
    assert len(granted) == len(set(granted)) == 60, "each once"
