"""A credential leaves the request sealed to the proxy: nothing that is stored or sent holds it in clear."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

from caisson.common.contexts import RunContext, unseal
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import Ground
from tests.support.product import submit
from tests.support.proxy_view import ProxyView, watching
from tests.support.tables import whole_ledger
from tests.support.worker import Worker

TOKEN = "tok-5f2c9a77b1"
USERS_OWN = "own-91c4d0e2aa"


@pytest.fixture
async def proxy(ground: Ground, gateway: ServiceProcess) -> AsyncIterator[ProxyView]:
    async with watching(ground.nats) as view:
        yield view


def opened(ground: Ground, context: RunContext, upstream: str = "metrics") -> list[str | None]:
    """Return the run's own credential and its tenant's, in clear, as the proxy would see them."""
    sealed = context.credentials[upstream]
    return [None if text is None else unseal(text, ground.private_key).value for text in (sealed.run, sealed.tenant)]


async def test_a_credential_is_ciphertext_wherever_it_lies(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, ground: Ground, proxy: ProxyView, tenant: str
) -> None:
    stored = await product.put(f"/v1/tenants/{tenant}/credentials/metrics", json={"bearer": TOKEN})
    assert (stored.status_code, TOKEN in stored.text) == (200, False)
    run_id = await submit(product, upstreams={"metrics": {"header": USERS_OWN}})
    grant = await worker.take()
    context = await proxy.context(grant.request_id)
    assert (context.tenant_id, context.run_id, context.fence, context.ttl_s) == (tenant, run_id, 1, grant.lease_s)
    assert opened(ground, context) == [USERS_OWN, TOKEN]
    await worker.work(grant)
    everything = await whole_ledger(ledger) + proxy.everything() + ground.log() + grant.model_dump_json()
    assert run_id in everything
    for secret in (TOKEN, USERS_OWN):
        assert secret not in everything
        assert secret.encode().hex() not in everything
    run = (await product.get(f"/v1/runs/{run_id}")).text
    assert not any(word in run for word in (TOKEN, USERS_OWN, "upstreams", "sealed"))


async def test_a_live_run_uses_a_new_credential_from_its_next_request_on(
    product: httpx.AsyncClient, worker: Worker, ground: Ground, proxy: ProxyView, tenant: str
) -> None:
    await submit(product)
    grant = await worker.take()
    assert (await proxy.context(grant.request_id)).credentials == {}
    for value in ("first", "second"):
        await product.put(f"/v1/tenants/{tenant}/credentials/metrics", json={"bearer": value})
        assert opened(ground, await proxy.context(grant.request_id)) == [None, value], "known when the call returns"
    assert (await product.delete(f"/v1/tenants/{tenant}/credentials/metrics")).status_code == 204
    assert (await proxy.context(grant.request_id)).credentials == {}
    assert (await product.delete(f"/v1/tenants/{tenant}/credentials/metrics")).status_code == 404


async def test_a_context_lives_and_dies_with_its_lease(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, proxy: ProxyView
) -> None:
    for _ in range(3):
        await submit(product)
    finished, released, lost = await worker.claim(3)
    for grant in (finished, released, lost):
        assert (await proxy.context(grant.request_id)).run_id == grant.run_id
    await worker.work(finished)
    await worker.release(released)
    await ledger.execute("UPDATE ledger.runs SET lease_expires_at = now() WHERE run_id = $1", lost.run_id)
    for grant in (finished, released, lost):
        await eventually(lambda request_id=grant.request_id: proxy.is_gone(request_id))  # type: ignore[misc]


async def test_a_heartbeat_puts_a_context_again(product: httpx.AsyncClient, worker: Worker, proxy: ProxyView) -> None:
    await submit(product)
    grant = await worker.take()
    before = await proxy.revision(grant.request_id)
    await worker.renew(grant)
    assert await proxy.revision(grant.request_id) > before


async def test_a_context_that_nobody_renews_dies_by_itself(
    product: httpx.AsyncClient, worker: Worker, proxy: ProxyView
) -> None:
    await submit(product)
    grant = await worker.take()
    assert await proxy.ttl(grant.request_id) == "15", "by the server's clock, whatever becomes of the gateway"


async def test_one_tenants_credential_never_enters_anothers_context(
    product: httpx.AsyncClient, worker: Worker, ground: Ground, gateway: ServiceProcess, proxy: ProxyView, tenant: str
) -> None:
    await product.put(f"/v1/tenants/{tenant}/credentials/metrics", json={"bearer": TOKEN})
    async with ground.client(gateway, tenant=f"{tenant} b") as other:
        await submit(other)
    assert (await proxy.context((await worker.take()).request_id)).credentials == {}


@pytest.mark.parametrize(
    "body",
    [{"bearer": f"{TOKEN}\r\nX: y"}, {"bearer": TOKEN, "header": TOKEN}, {"cookie": TOKEN}, {"bearer": [TOKEN]}],
)
async def test_a_refused_credential_is_not_repeated_in_the_refusal_or_the_log(
    product: httpx.AsyncClient, ground: Ground, tenant: str, body: dict[str, Any]
) -> None:
    refused = await product.put(f"/v1/tenants/{tenant}/credentials/metrics", json=body)
    in_run = await product.post(
        "/v1/runs", json={"steps": [{"bash": {"command": "true"}}], "upstreams": {"metrics": body}}
    )
    assert (refused.status_code, in_run.status_code) == (422, 422)
    assert TOKEN not in refused.text + in_run.text + ground.log()
