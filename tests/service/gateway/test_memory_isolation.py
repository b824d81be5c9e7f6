"""Whatever key, headers, query and body say: what is told is within what SQL admits for whom the key vouches."""

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground, client

USERS = ("ana", "Ana", "an", "ana:x", "user:ana", "an%61", "jose\u0301", "jos\u00e9", "\u0430na")
SCOPES = ("team:a", "TEAM:A", "team", "team:ab", "te\u0430m:a", "\uff54eam:a", "cafe\u0301", "caf\u00e9", "team%3Aa")
ODD = (
    "",
    " ",
    "*",
    "tenant",
    "user:",
    "user:ana",
    "user:an",
    "User:ana",
    "team:*",
    "team:a ",
    "x" * 129,
    "%",
    "user:*",
)
WIDER: list[dict[str, Any]] = [
    {},
    {"tenant_id": "?"},
    {"user_id": "ana"},
    {"scopes": ["tenant", "user:ana"]},
    {"caller": {"tenant_id": "?", "user_id": "ana", "scopes": ["user:ana"]}},
    {"filter": {"must": []}},
    {"metadata": {"scopes": ["user:ana"]}},
    {"owner_scope": "user:ana"},
]
READABLE = """
SELECT memory_id, text FROM memory.memories
WHERE tenant_id = $1 AND EXISTS (SELECT 1 FROM unnest(scopes) AS scope WHERE scope = ANY ($2::text[]))
  AND (expires_at IS NULL OR expires_at > now())
"""
_ID = re.compile(r"mem_[0-9a-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD = re.compile(r"\bn\d+x\b")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Two tenants whose names begin alike, with a memory for every user, every scope, and everybody."""

    gateway: ServiceProcess
    tenants: tuple[str, str]
    keys: dict[str, str]
    store: asyncpg.Pool
    http: httpx.AsyncClient
    ids: list[str] = field(default_factory=list)
    audience: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def overheard(self, tenant: str, scopes: set[str], answer: str) -> set[str]:
        rows = await self.store.fetch(READABLE, tenant, sorted(scopes))
        ids = {row["memory_id"] for row in rows}
        said = {word for row in rows for word in _WORD.findall(row["text"])}
        words = {word for word in said if self.audience[word][0] == tenant and self.audience[word][1] in scopes}
        return (set(_ID.findall(answer)) - ids) | (set(_WORD.findall(answer)) - words)


@pytest.fixture(scope="module")
async def crowd(
    ground: Ground, gateway: ServiceProcess, memory: ServiceProcess, ledger: asyncpg.Pool
) -> AsyncIterator[Crowd]:
    name = f"crowd{secrets.token_hex(3)}"
    tenants = (name, f"{name}0")
    keys = {"platform": ground.platform_key}
    http = httpx.AsyncClient(base_url=gateway.addresses["http"], trust_env=False, timeout=20)
    made = Crowd(gateway=gateway, tenants=tenants, keys=keys, store=ledger, http=http)
    for tenant in tenants:
        async with client(gateway, ground.platform_key, tenant=tenant, user="backend") as backend:
            keys[tenant] = (await backend.post("/v1/keys", json={"name": "app", "tenant_id": tenant})).json()["key"]
        for user in USERS:
            await _remember(made, tenant, user, [f"user:{user}", "tenant"])
        await _remember(made, tenant, "backend", list(SCOPES))
    await ledger.execute("UPDATE memory.memories SET expires_at = now() WHERE memory_id = $1", made.ids[3])
    yield made
    await http.aclose()


async def _remember(crowd: Crowd, tenant: str, user: str, scopes: list[str]) -> None:
    memories = []
    for scope in scopes:
        word = f"n{len(crowd.audience)}x"
        crowd.audience[word] = (tenant, scope)
        memories.append({"text": f"the harbour {word}", "scopes": [scope]})
    async with client(crowd.gateway, crowd.keys["platform"], tenant=tenant, user=user) as product:
        granted = [(b"Caisson-Scopes", ",".join(scopes).encode())]
        told = await product.post("/v1/memories", json={"memories": memories}, headers=granted)
    crowd.ids.extend(result["id"] for result in told.json()["results"])


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Return who asks as whom, and how."""
    scope = st.sampled_from((*SCOPES, *ODD))
    scopes = st.lists(scope, max_size=4) | st.sampled_from(
        [["team:a"] * 70, [f"s{n}" for n in range(64)] + ["team:a"]]
    )
    return {
        "key": draw(st.sampled_from(("platform", "platform", 0, 1))),
        "tenant": draw(st.sampled_from((0, 0, 1, None))),
        "users": draw(st.lists(st.sampled_from(USERS), min_size=1, max_size=2 if draw(st.booleans()) else 1)),
        "scopes": draw(st.lists(scopes, max_size=2 if draw(st.integers(0, 3)) == 0 else 1)),
        "way": draw(st.sampled_from(("list", "get", "history", "search", "context", "export", "patch", "delete"))),
        "of": draw(st.sampled_from(USERS)),
        "place": draw(st.integers(0, 1_000)),
        "wider": draw(st.sampled_from(WIDER)),
    }


def _target(crowd: Crowd, asked: dict[str, Any]) -> tuple[str, str, dict[str, Any] | None]:
    wider, id_ = asked["wider"], crowd.ids[asked["place"] % len(crowd.ids)]
    query = "".join(f"?{name}={quote(str(value))}" for name, value in wider.items())
    match asked["way"]:
        case "list":
            return "GET", f"/v1/memories{query}", None
        case "get":
            return "GET", f"/v1/memories/{id_}{query}", None
        case "history":
            return "GET", f"/v1/memories/{id_}/history{query}", None
        case "export":
            return "GET", f"/v1/users/{quote(asked['of'], safe='')}/memories/export{query}", None
        case "patch":
            return "PATCH", f"/v1/memories/{id_}", {"importance": 0.5} | wider
        case "delete":
            return "DELETE", f"/v1/memories/{id_}?tenant_id={crowd.tenants[0]}", None
        case way:
            return "POST", f"/v1/memories/{way}", {"query": "harbour", "k": 100} | wider


@given(asked=requests())
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_nothing_is_told_beyond_what_the_key_vouches_for(crowd: Crowd, asked: dict[str, Any]) -> None:
    own = None if asked["key"] == "platform" else crowd.tenants[asked["key"]]
    named = None if asked["tenant"] is None else crowd.tenants[asked["tenant"]]
    given_scopes = [",".join(scopes).strip(" ") for scopes in asked["scopes"]]
    lines = [
        ("Authorization", f"Bearer {crowd.keys[own or 'platform']}"),
        *([("Caisson-Tenant", named)] if named else []),
        *(("Caisson-User", user) for user in asked["users"]),
        *(("Caisson-Scopes", given) for given in given_scopes),
    ]
    method, target, body = _target(crowd, asked)
    headers = [(name.encode(), value.encode()) for name, value in lines]
    answer = await crowd.http.request(method, target, json=body, headers=headers)
    ambiguous = len(asked["users"]) > 1 or len(given_scopes) > 1
    foreign = own is not None and (given_scopes or named not in {None, own})
    if ambiguous or foreign or (own or named) is None:
        assert answer.status_code in {403, 422}, "nobody is vouched for"
    if asked["wider"] and asked["way"] != "delete":
        assert answer.status_code in {403, 422}, "a body says no more than the key"
    assert answer.status_code < 500
    scopes = {"tenant", f"user:{asked['users'][0]}"}
    if own is None:
        scopes |= {scope.strip(" \t") for given in given_scopes for scope in given.split(",")}
        scopes |= {f"user:{asked['of']}"} if asked["way"] == "export" else set()
    overheard = await crowd.overheard(own or named or "", scopes, answer.text)
    assert overheard == set(), answer.text


async def test_a_stored_answer_is_replayed_to_the_same_scopes_alone(crowd: Crowd) -> None:
    body = {"text": "the harbour closes at six", "scopes": ["team"]}
    repeated = {"Idempotency-Key": secrets.token_hex()}
    async with client(crowd.gateway, crowd.keys["platform"], tenant=crowd.tenants[0], user="backend") as backend:
        made = await backend.post("/v1/memories", json=body, headers={**repeated, "Caisson-Scopes": "team"})
        assert made.status_code == 201, made.text
        refused = await backend.post("/v1/memories", json=body, headers=repeated)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert made.json()["id"] not in refused.text
