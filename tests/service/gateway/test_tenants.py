"""Tenants: one uid each for ever, made on first use, with settings that hold, under ids of any script."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx
import pytest

from caisson.common import subjects
from caisson.common.envelope import open_envelope
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import Ground
from tests.support.product import submit, the_run
from tests.support.sse import events_of
from tests.support.worker import Worker

IDS = [
    ("acme.com", "u.1", "dots, which part tokens"),
    ("acme com", "first last", "spaces inside"),
    ("a/b", "c/d", "slashes, which part paths"),
    ("a/credentials/b", "u", "a path of this API"),
    ("株式会社", "ユーザー", "no Latin letter"),
    ("شركة", "مستخدم", "right to left"),
    ("😀", "👩‍👩‍👧".replace("\u200d", ""), "beyond the basic plane"),
    ("%2e%2e", "a%00b", "what looks escaped"),
    ("..", ".", "what looks like a folder"),
    ("*", ">", "wildcards of the bus"),
    ("-", "_2d", "the absent mark"),
    ("a_2eb", "a=b", "what looks encoded"),
    ("x" * 128, "😀" * 128, "the longest"),
    ("'; DROP TABLE ledger.runs; --", '"', "what looks like SQL"),
]


@pytest.fixture
async def platform(ground: Ground, gateway: ServiceProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with ground.client(gateway, tenant=None) as caller:
        yield caller


@pytest.mark.parametrize(("tenant_id", "user_id", "reason"), IDS)
async def test_ids_of_any_script_go_all_the_way_and_back(
    ground: Ground, gateway: ServiceProcess, worker: Worker, tenant_id: str, user_id: str, reason: str
) -> None:
    doorbells: list[tuple[str, bytes]] = []
    listening = await worker.bus.listen(subjects.RUN_QUEUED_PATTERN, lambda *bell: doorbells.append(bell))
    await worker.bus.connection.flush()
    async with ground.client(gateway, tenant=tenant_id, user=user_id) as product:
        run_id = await submit(product)
        grant = await worker.take()
        assert (grant.tenant_id, grant.user_id) == (tenant_id, user_id)
        async with events_of(product, run_id) as reader:
            await reader.until(lambda event: event.type == "run.started")
            await worker.start(grant)
            await worker.say(grant, "heard")
            await worker.finish(grant, finish_run=True)
            events = await reader.rest()
        assert [event.data["text"] for event in events if event.type == "step.output"] == ["heard"]
        run = await the_run(product, run_id)
        assert (run["tenant_id"], run["user_id"], run["status"]) == (tenant_id, user_id, "succeeded")
        path = f"/v1/tenants/{quote(tenant_id, safe='')}"
        if tenant_id != "..":  # no client sends this path
            credential = await product.put(f"{path}/credentials/metrics", json={"bearer": "tok"})
            assert credential.json()["tenant_id"] == tenant_id
            assert (await product.get(path)).json()["id"] == tenant_id
    await eventually(lambda: doorbells)
    envelope = open_envelope(*doorbells[0])[1]
    assert (envelope.tenant_id, envelope.user_id, envelope.run_id) == (tenant_id, user_id, run_id)
    await listening.unsubscribe()


async def test_ids_that_differ_in_case_or_normal_form_are_different_tenants(platform: httpx.AsyncClient) -> None:
    mark = secrets.token_hex(4)
    ids = [f"{mark}e\u0301", f"{mark}\u00e9", f"{mark}E\u0301", f"{mark}e"]
    for one in ids:
        response = await platform.post(
            "/v1/runs",
            json={"steps": [{"bash": {"command": "true"}}]},
            headers={b"Caisson-Tenant": one.encode()},
        )
        assert response.json()["tenant_id"] == one
    uids = [(await platform.get(f"/v1/tenants/{quote(one, safe='')}")).json()["uid"] for one in ids]
    assert len(set(uids)) == 4


async def test_fifty_tenants_at_once_get_fifty_uids(platform: httpx.AsyncClient, tenant: str) -> None:
    plan = {"steps": [{"bash": {"command": "true"}}]}
    names = [f"{tenant} {number % 25}" for number in range(50)]
    answers = await asyncio.gather(
        *(platform.post("/v1/runs", json=plan, headers={"Caisson-Tenant": name}) for name in names)
    )
    assert {answer.status_code for answer in answers} == {202}
    uids = {name: (await platform.get(f"/v1/tenants/{quote(name)}")).json()["uid"] for name in names}
    assert len(set(uids.values())) == 25
    assert all(10_000 <= uid <= 60_000 for uid in uids.values())


async def test_when_no_uid_is_left_a_new_tenant_is_refused_and_the_others_go_on(
    product: httpx.AsyncClient, platform: httpx.AsyncClient, ledger: asyncpg.Pool, tenant: str
) -> None:
    await submit(product)
    await ledger.execute("INSERT INTO ledger.tenants (tenant_id, uid) VALUES ('the last one', 60000)")
    try:
        refused = await platform.post(
            "/v1/runs",
            json={"steps": [{"bash": {"command": "true"}}]},
            headers={"Caisson-Tenant": f"{tenant} b"},
        )
        assert (refused.status_code, refused.json()["code"]) == (507, "uid_range_exhausted")
        assert (await platform.get(f"/v1/tenants/{tenant} b")).status_code == 404
        assert await submit(product)
    finally:
        await ledger.execute("DELETE FROM ledger.tenants WHERE uid = 60000")


async def test_a_tenants_settings_hold_for_its_runs(product: httpx.AsyncClient, worker: Worker, tenant: str) -> None:
    settings: dict[str, Any] = {"limits": {"memory_mib": 64, "timeout_s": 33}, "ceilings": {"memory_mib": 100}}
    answer = (await product.put(f"/v1/tenants/{tenant}", json={**settings, "max_concurrency": 2})).json()
    assert (answer["limits"]["memory_mib"], answer["ceilings"]["memory_mib"], answer["max_concurrency"]) == (
        64,
        100,
        2,
    )
    kept = (await product.put(f"/v1/tenants/{tenant}", json={"max_attempts": 9})).json()
    assert kept == {**answer, "max_attempts": 9}, "what is left out stays"
    await submit(product)
    grant = await worker.take()
    assert (grant.limits.memory_mib, grant.limits.timeout_s, grant.limits.pids) == (64, 33, 128)
    too_much = await product.post(
        "/v1/runs", json={"steps": [{"bash": {"command": "true"}}], "limits": {"memory_mib": 101}}
    )
    assert too_much.status_code == 422
    assert too_much.json()["errors"] == [{"field": "limits.memory_mib", "message": "at most 100"}]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_concurrency": 0},
        {"max_concurrency": 10**9},
        {"max_attempts": -1},
        {"retention_days": 0},
        {"limits": {"memory_mib": 10**6}},
        {"ceilings": {"timeout_s": 0.0}},
        {"ceilings": {"pids": 10**6}},
        {"max_attempts": "3"},
        {"uid": 0},
    ],
)
async def test_settings_out_of_range_are_refused_and_change_nothing(
    product: httpx.AsyncClient, tenant: str, settings: dict[str, Any]
) -> None:
    before = (await product.put(f"/v1/tenants/{tenant}", json={})).json()
    assert (await product.put(f"/v1/tenants/{tenant}", json=settings)).status_code == 422
    assert (await product.get(f"/v1/tenants/{tenant}")).json() == before
