"""API keys: shown once, stored nowhere, bound to what they are for, refused the moment they are revoked."""

import secrets
from collections.abc import AsyncIterator

import asyncpg
import httpx
import pytest

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground, client
from tests.support.tables import whole_ledger

BAD_AUTHORIZATION = [
    ("", "nothing"),
    ("Bearer", "no key"),
    ("Basic dTpw", "another scheme"),
    ("Bearer csn_0_0", "a key that was never made"),
    ("Bearer csn__", "empty parts"),
    ("Bearer csn_%00_%00", "escaped NUL"),
    (b"Bearer csn_\xff_\xff", "bytes that are no text"),
    ("Bearer " + "x" * 10_000, "a very long key"),
]


@pytest.fixture
async def platform(ground: Ground, gateway: ServiceProcess) -> AsyncIterator[httpx.AsyncClient]:
    """The platform key, acting for nobody."""
    async with ground.client(gateway, tenant=None, user=None) as caller:
        yield caller


async def make_key(platform: httpx.AsyncClient, tenant: str | None, **headers: str) -> dict[str, str]:
    response = await platform.post("/v1/keys", json={"name": "app", "tenant_id": tenant}, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, str] = response.json()
    return made


@pytest.mark.parametrize(("value", "reason"), BAD_AUTHORIZATION)
async def test_a_caller_without_a_valid_key_is_unknown(
    gateway: ServiceProcess, value: str | bytes, reason: str
) -> None:
    raw = value.encode() if isinstance(value, str) else value
    async with httpx.AsyncClient(base_url=gateway.addresses["http"], trust_env=False) as caller:
        refused = await caller.get("/v1/runs", headers={b"Authorization": raw} if value else {})
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated"), reason
    assert refused.headers["www-authenticate"] == "Bearer"


async def test_the_right_name_with_a_wrong_secret_is_as_unknown_as_no_name(
    platform: httpx.AsyncClient, gateway: ServiceProcess, tenant: str
) -> None:
    made = await make_key(platform, tenant)
    answers = []
    for key in (made["key"][:-1] + "x", made["key"][:-1], made["key"] + "0", f"csn_0_{secrets.token_hex()}"):
        async with client(gateway, key) as caller:
            answers.append((await caller.get("/v1/runs")).content)
    assert len(set(answers)) == 1


async def test_a_tenant_key_acts_for_its_tenant_only(
    platform: httpx.AsyncClient, gateway: ServiceProcess, tenant: str
) -> None:
    made = await make_key(platform, tenant)
    async with client(gateway, made["key"]) as caller:
        run = (await caller.post("/v1/runs", json={"steps": [{"bash": {"command": "true"}}]})).json()
        assert (run["tenant_id"], run["user_id"]) == (tenant, f"key:{made['id']}")
        assert (await caller.get("/v1/runs", headers={"Caisson-Tenant": tenant})).status_code == 200
        for path in ("/v1/runs", f"/v1/runs/{run['id']}"):
            refused = await caller.get(path, headers={"Caisson-Tenant": f"{tenant}x"})
            assert (refused.status_code, refused.json()["code"]) == (403, "tenant_mismatch")
        for method, path in (
            ("PUT", f"/v1/tenants/{tenant}"),
            ("GET", f"/v1/tenants/{tenant}"),
            ("POST", "/v1/keys"),
        ):
            refused = await caller.request(method, path, json={} if method == "PUT" else {"name": "k"})
            assert (refused.status_code, refused.json()["code"]) == (403, "platform_only")
        other = await caller.put("/v1/tenants/globex/credentials/metrics", json={"bearer": "tok"})
        assert other.status_code == 403


async def test_a_platform_key_must_say_for_whom_it_acts(platform: httpx.AsyncClient, tenant: str) -> None:
    plan = {"steps": [{"bash": {"command": "true"}}]}
    nobody = await platform.post("/v1/runs", json=plan, headers={"Caisson-User": "u-1"})
    assert (nobody.status_code, nobody.json()["code"]) == (422, "tenant_required")
    no_user = await platform.post("/v1/runs", json=plan, headers={"Caisson-Tenant": tenant})
    assert (no_user.status_code, no_user.json()["code"]) == (422, "user_required")
    assert (await platform.get(f"/v1/tenants/{tenant}")).status_code == 404, "a refused request makes no tenant"


async def test_a_revoked_key_is_refused_by_the_very_next_request(
    platform: httpx.AsyncClient, gateway: ServiceProcess, tenant: str
) -> None:
    made = await make_key(platform, tenant)
    async with client(gateway, made["key"]) as caller:
        assert (await caller.get("/v1/runs")).status_code == 200
        assert (await platform.delete(f"/v1/keys/{made['id']}")).status_code == 204
        assert (await caller.get("/v1/runs")).status_code == 401
    assert (await platform.delete(f"/v1/keys/{made['id']}")).status_code == 204, "revoking is idempotent"
    listed = (await platform.get("/v1/keys", params={"prefix": made["id"]})).json()["items"]
    assert [key["id"] for key in listed if key["revoked_at"]] == [made["id"]]


async def test_keys_are_listed_newest_first_by_prefix_and_within_the_tenant(
    platform: httpx.AsyncClient, gateway: ServiceProcess, tenant: str
) -> None:
    made = [await make_key(platform, tenant) for _ in range(3)]
    stranger = await make_key(platform, f"{tenant} b")
    ids = [key["id"] for key in made][::-1]
    as_tenant = {"Caisson-Tenant": tenant}
    assert [key["id"] for key in (await platform.get("/v1/keys", headers=as_tenant)).json()["items"]] == ids
    everything = (await platform.get("/v1/keys", params={"limit": 4})).json()["items"]
    assert [key["id"] for key in everything] == [stranger["id"], *ids]
    async with client(gateway, made[0]["key"]) as caller:
        listed = (await caller.get("/v1/keys")).json()["items"]
        assert [key["id"] for key in listed] == ids
        assert not {"key", "secret_hash"} & listed[0].keys()
        assert (await caller.delete(f"/v1/keys/{stranger['id']}")).status_code == 404
        assert (await caller.get("/v1/keys", params={"prefix": stranger["id"]})).json()["items"] == []
    assert (await platform.delete(f"/v1/keys/{stranger['id']}", headers=as_tenant)).status_code == 204


async def test_the_text_of_a_key_is_stored_nowhere(
    platform: httpx.AsyncClient, ledger: asyncpg.Pool, ground: Ground, tenant: str
) -> None:
    made = await make_key(platform, tenant, **{"Idempotency-Key": secrets.token_hex()})
    stored = await whole_ledger(ledger)
    assert made["id"] in stored
    secret = made["key"].removeprefix(f"{made['id']}_")
    assert len(secret) == 64
    for text in (made["key"], secret, secret.encode().hex(), ground.platform_key.rsplit("_", 1)[1]):
        assert text not in stored
    assert secret not in ground.log()


async def test_a_repeated_request_for_a_key_makes_no_second_one_and_shows_the_first_no_more(
    platform: httpx.AsyncClient, tenant: str
) -> None:
    header = {"Idempotency-Key": secrets.token_hex()}
    made = await make_key(platform, tenant, **header)
    again = await make_key(platform, tenant, **header)
    assert again == {**made, "key": None}
