"""Whose run is next, and how many at once: fair across tenants, and never more than a tenant may have."""

import asyncio
from collections import Counter
from typing import Any

import asyncpg
import httpx

from caisson.common.leases import Grant
from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground
from tests.support.product import COPIES, submit
from tests.support.worker import Worker


async def set_concurrency(product: httpx.AsyncClient, tenant: str, most: int) -> None:
    response = await product.put(f"/v1/tenants/{tenant}", json={"max_concurrency": most})
    assert response.status_code == 200


async def test_a_tenants_only_run_does_not_wait_behind_anothers_five_hundred(
    product: httpx.AsyncClient,
    worker: Worker,
    ledger: asyncpg.Pool,
    ground: Ground,
    gateway: ServiceProcess,
    tenant: str,
) -> None:
    await set_concurrency(product, tenant, 1_000)
    await ledger.execute(COPIES, await submit(product), 499)
    assert {grant.tenant_id for grant in await worker.claim(8)} == {tenant}
    async with ground.client(gateway, tenant=f"{tenant} b") as other:
        single = await submit(other)
        assert [grant.run_id for grant in await worker.claim(1)] == [single]
        second = await submit(other)
        assert [grant.run_id for grant in await worker.claim(1)] == [second], "one live lease against eight"


async def test_runs_of_one_tenant_are_granted_in_the_order_in_which_they_came(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    runs = [await submit(product) for _ in range(5)]
    assert [(await worker.claim(1))[0].run_id for _ in range(5)] == runs


async def test_reserved_slots_are_for_tenants_that_have_none_running(
    product: httpx.AsyncClient,
    worker: Worker,
    ledger: asyncpg.Pool,
    ground: Ground,
    gateway: ServiceProcess,
    tenant: str,
) -> None:
    await ledger.execute(COPIES, await submit(product), 9)
    assert len(await worker.claim(4, reserve=2)) == 2, "the busy tenant fills what is not reserved"
    assert await worker.claim(2, reserve=2) == []
    async with ground.client(gateway, tenant=f"{tenant} b") as other:
        newcomers = [await submit(other) for _ in range(3)]
        assert [grant.run_id for grant in await worker.claim(2, reserve=2)] == newcomers[:1]


async def test_concurrent_claims_never_exceed_a_tenants_concurrency_and_leave_no_slot_idle(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, tenant: str
) -> None:
    await set_concurrency(product, tenant, 7)
    await ledger.execute(COPIES, await submit(product), 60)
    live = "SELECT count(*) FROM ledger.runs WHERE tenant_id = $1 AND status = 'running'"
    granted: Counter[str] = Counter()

    async def work(name: str) -> None:
        mine = worker.named(f"{worker.name}-{name}")
        for _ in range(6):
            for grant in await mine.claim(3):
                assert await ledger.fetchval(live, tenant) <= 7
                granted[grant.run_id] += 1
                await mine.work(grant)

    await asyncio.gather(*(work(str(number)) for number in range(6)))
    assert set(granted.values()) == {1}, "no run was granted twice"
    assert len(granted) >= 36, "each claim found a run"
    filled = await asyncio.gather(*(worker.named(f"{worker.name}-{n}").claim(3) for n in range(6)))
    assert sum(map(len, filled)) == min(7, 61 - len(granted))


async def test_claims_at_the_same_moment_share_out_the_tenants(
    worker: Worker, ledger: asyncpg.Pool, ground: Ground, gateway: ServiceProcess, tenant: str
) -> None:
    async with ground.client(gateway, tenant=None) as product:
        for number in range(6):
            product.headers.update({"Caisson-Tenant": f"{tenant} {number}"})
            await set_concurrency(product, f"{tenant} {number}", 1)
            await ledger.execute(COPIES, await submit(product), 3)
    claims: list[Any] = await asyncio.gather(*(worker.named(f"w{number}").claim(1) for number in range(6)))
    assert sorted(grant.tenant_id for grants in claims for grant in grants) == [f"{tenant} {n}" for n in range(6)]
    assert await worker.claim(1) == [], "every tenant has what it may have"


async def test_a_backlog_of_large_plans_is_granted_in_replies_that_the_bus_carries(
    ground: Ground, gateway: ServiceProcess, worker: Worker, tenant: str
) -> None:
    wanted = set()
    for number in range(5):
        async with ground.client(gateway, tenant=f"{tenant}-{number}") as product:
            wanted.add(await submit(product, *["x" * 120_000] * 30))
    got: list[Grant] = []
    while len(got) < len(wanted):
        granted = await worker.claim(8)
        assert 0 < sum(grant.size_bytes for grant in granted) < 6_000_000
        got += granted
    assert {grant.run_id for grant in got} == wanted
    for grant in got:
        await worker.finish_run(grant)
