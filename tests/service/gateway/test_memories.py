"""Memories over HTTP, with a real memory service behind the gateway."""

import re
import secrets
from typing import Any
from xml.etree import ElementTree

import asyncpg
import httpx
import pytest

from caisson.common.memories import Changes
from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground, client

MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CHANGEABLE = set(Changes.model_fields)
pytestmark = pytest.mark.usefixtures("memory")


async def remember(product: httpx.AsyncClient, text: str, **fields: Any) -> str:
    answer = await product.post("/v1/memories", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_memory_is_remembered_found_corrected_and_forgotten(product: httpx.AsyncClient) -> None:
    made = await product.post("/v1/memories", json={"text": "I live in Oslo", "tags": ["home"], "importance": 0.9})
    assert (made.status_code, made.json()["status"]) == (201, "created")
    path = made.headers["location"]
    again = await product.post("/v1/memories", json={"text": "i live in  OSLO"})
    assert (again.status_code, again.json()["status"], again.json()["id"]) == (200, "duplicate_of", made.json()["id"])

    found = (await product.post("/v1/memories/search", json={"query": "where do I live"})).json()
    assert [hit["memory"]["text"] for hit in found["hits"]] == ["I live in Oslo"]
    assert found["diagnostics"]["backend"] == "vector"

    corrected = await product.patch(path, json={"text": "I live in Bergen"})
    assert corrected.status_code == 200, corrected.text
    whole = (await product.get(path)).json()
    assert (whole["text"], whole["tags"], whole["importance"], whole["version"]) == (
        "I live in Bergen",
        ["home"],
        0.9,
        2,
    )
    assert all(MILLISECONDS.fullmatch(whole[name]) for name in ("valid_from", "created_at", "updated_at"))
    history = (await product.get(f"{path}/history")).json()["entries"]
    assert [entry["text"] for entry in history] == ["I live in Oslo", "I live in Bergen"]

    receipt = await product.delete(path)
    assert (receipt.status_code, receipt.json()["deleted"], receipt.json()["complete"]) == (200, [whole["id"]], True)
    assert (await product.get(f"/v1/memories/receipts/{receipt.json()['id']}")).json() == receipt.json()
    assert (await product.get("/v1/memories/receipts/job_00000000000000000000000000")).status_code == 404
    assert (await product.get(path)).status_code == 404
    assert (await product.post("/v1/memories/search", json={"query": "where do I live"})).json()["hits"] == []


async def test_null_removes_an_end_and_is_refused_where_there_is_none(product: httpx.AsyncClient) -> None:
    ends = {"valid_to": "2040-01-01T00:00:00.000Z", "expires_at": "2040-02-01T00:00:00.000Z"}
    path = f"/v1/memories/{await remember(product, 'the lease ends in winter', **ends)}"
    kept = (await product.patch(path, json={"importance": 0.9})).json()
    assert {name: kept[name] for name in ends} == ends, "what is left out stays"
    for removed in ends:
        changed = await product.patch(path, json={removed: None})
        assert (changed.status_code, changed.json()[removed]) == (200, None), changed.text
    assert (await product.get(path)).json()["version"] == 4
    for name in CHANGEABLE - {"valid_to", "expires_at"}:
        refused = await product.patch(path, json={name: None})
        assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (422, [name])
    described = (await product.get("/openapi.json")).json()["components"]["schemas"]["ChangesRequest"]["properties"]
    nullable = {name for name, told in described.items() if {"type": "null"} in told.get("anyOf", [])}
    assert (set(described), nullable) == (CHANGEABLE, {"valid_to", "expires_at"})


async def test_a_list_of_memories_is_answered_one_by_one_and_read_in_pages(product: httpx.AsyncClient) -> None:
    texts = [f"the locker {number} belongs to team {number}" for number in range(5)]
    body = {"memories": [{"text": text} for text in texts] + [{"text": "ok thanks"}]}
    results = (await product.post("/v1/memories", json=body)).json()["results"]
    assert [result["status"] for result in results] == ["created"] * 5 + ["rejected"]
    assert results[-1]["reason"]
    seen: list[str] = []
    params: dict[str, str] | None = {"limit": "2"}
    while params is not None:
        page = (await product.get("/v1/memories", params=params)).json()
        assert len(page["items"]) <= 2
        seen += [item["text"] for item in page["items"]]
        params = {"limit": "2", "cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert seen == texts[::-1]


async def test_a_context_is_quoted_and_its_recall_can_be_rewarded_once(product: httpx.AsyncClient) -> None:
    memory_id = await remember(product, "<b>tea</b> at five o'clock")
    context = (await product.post("/v1/memories/context", json={"query": "when is tea"})).json()
    assert ElementTree.fromstring(context["text"])[0].text == "<b>tea</b> at five o'clock"
    body = {"retrieval_id": context["retrieval_id"], "reward": 1}
    assert (await product.post("/v1/memories/feedback", json=body)).json() == {"updated": [memory_id]}
    assert (await product.post("/v1/memories/feedback", json=body)).status_code == 409
    whole = (await product.get(f"/v1/memories/{memory_id}")).json()
    assert (whole["q"], whole["visits"]) == (pytest.approx(0.1), 1)


async def test_only_a_platform_key_grants_scopes(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient, tenant: str
) -> None:
    granted = {"Caisson-Scopes": "team:a, team:b"}
    body = {"text": "team a ships on Tuesdays", "scopes": ["team:a"]}
    refused = await product.post("/v1/memories", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "memories.0.scopes")
    assert (await product.post("/v1/memories", json=body, headers=granted)).status_code == 201
    query = {"query": "when does team a ship"}
    for headers, hits in ((granted, 1), ({"Caisson-Scopes": "team:ab"}, 0), ({"Caisson-Scopes": "team"}, 0), ({}, 0)):
        told = (await product.post("/v1/memories/search", json=query, headers=headers)).json()
        assert len(told["hits"]) == hits, headers

    made = await product.post("/v1/keys", json={"name": "app", "tenant_id": tenant})
    async with client(gateway, made.json()["key"], user="u-1") as app:
        denied = await app.post("/v1/memories/search", json=query, headers=granted)
        assert (denied.status_code, denied.json()["code"]) == (403, "platform_only")
        assert (await app.post("/v1/memories/search", json=query)).json()["hits"] == []


async def test_a_scope_with_a_comma_is_granted_in_quotes_and_by_none_of_its_parts(product: httpx.AsyncClient) -> None:
    both = {"Caisson-Scopes": 'team:a, "team:a, team:b"'}
    body = {"text": "both teams ship on Fridays", "scopes": ["team:a, team:b"]}
    assert (await product.post("/v1/memories", json=body, headers=both)).status_code == 201
    query = {"query": "when do both teams ship"}
    for given, hits in (('"team:a, team:b"', 1), ("team:a, team:b", 0), ('"team:a,team:b"', 0)):
        told = await product.post("/v1/memories/search", json=query, headers={"Caisson-Scopes": given})
        assert len(told.json()["hits"]) == hits, given


REFUSED: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("search", "", {"query": "  "}, "query", "blank"),
    ("search", "", {"query": "the and of"}, "query", "stop words"),
    ("search", "", {"query": 7}, "query", "a number for a query: the field is called as a place in a request is"),
    ("search", "", {"query": "tea", "user_id": "eve"}, "user_id", "a body that says who asks"),
    ("search", "", {"query": "tea", "caller": {"tenant_id": "acme"}}, "caller", "a body with a caller"),
    ("search", "", {"query": "tea", "k": 1_000}, "k", "over the limit"),
    ("search", "", {"query": "tea", "k": "8"}, "k", "a text for a number"),
    ("search", "", {"query": "tea", "as_of": "2026-03-01T10:00:00"}, "as_of", "a time without its offset"),
    ("search", "", {"query": "tea", "as_of": 1_772_000_000}, "as_of", "a number for a time"),
    ("search", "", {"query": "tea", "as_of": "1772000000"}, "as_of", "a number as a text for a time"),
    ("", "", {"text": "tea", "tenant_id": "acme"}, "tenant_id", "a tenant in the body"),
    ("", "", {"text": "tea", "scopes": ["user:eve"]}, "memories.0.scopes", "another user's scope"),
    ("", "", {"text": "tea", "scopes": []}, "memories.0.scopes", "nobody's"),
    ("", "", {"text": "tea", "metadata": {"tenant_id": "b"}}, "memories.0.metadata.tenant_id", "a claim in metadata"),
    ("", "", {"text": "tea", "memories": [{"text": "tea"}]}, "text", "one and many"),
    ("", "", {}, "text", "neither one nor many"),
    ("feedback", "", {"retrieval_id": "ret_1", "reward": 1.5}, "reward", "over the limit"),
    ("search", "team:a,,b", {"query": "tea"}, "Caisson-Scopes", "an empty scope"),
    ("search", 'team:a,"b', {"query": "tea"}, "Caisson-Scopes", "a quote that does not end"),
    ("search", ",".join(map(str, range(65))), {"query": "tea"}, "Caisson-Scopes", "too many scopes"),
]


@pytest.mark.parametrize(("path", "scopes", "body", "field", "reason"), REFUSED, ids=[row[4] for row in REFUSED])
async def test_a_bad_request_names_its_field(
    product: httpx.AsyncClient, path: str, scopes: str, body: dict[str, Any], field: str, reason: str
) -> None:
    headers = {"Caisson-Scopes": scopes} if scopes else {}
    answer = await product.post(f"/v1/memories/{path}".rstrip("/"), json=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert field in {error["field"] for error in answer.json()["errors"]}
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_repeated_key_remembers_once_and_stores_no_copy_of_what_recalls_tell(
    product: httpx.AsyncClient, ledger: asyncpg.Pool
) -> None:
    key = {"Idempotency-Key": secrets.token_hex()}
    word = f"canary{secrets.token_hex(6)}"
    body = {"text": f"the word is {word}"}
    first = await product.post("/v1/memories", json=body, headers=key)
    again = await product.post("/v1/memories", json=body, headers=key)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    search = {"Idempotency-Key": secrets.token_hex()}
    for path in ("search", "context"):
        told = await product.post(f"/v1/memories/{path}", json={"query": "which word"}, headers=search)
        assert word in told.text
    rows = await ledger.fetch(
        "SELECT convert_from(body, 'utf-8') AS body FROM ledger.idempotency WHERE body IS NOT NULL"
    )
    assert rows
    assert not any(word in row["body"] for row in rows)


async def test_a_user_is_exported_and_erased_by_the_product_and_by_nobody_else(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient, tenant: str
) -> None:
    async with ground.client(gateway, tenant=tenant, user="leaving") as leaving:
        for number in range(3):
            await remember(leaving, f"drawer {number} is mine")
    await remember(product, "drawer nine is mine")
    made = await product.post("/v1/keys", json={"name": "app", "tenant_id": tenant})
    async with client(gateway, made.json()["key"], user="u-1") as app:
        for answer in (
            await app.get("/v1/users/leaving/memories/export"),
            await app.delete("/v1/users/leaving/memories"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    first = (await product.get("/v1/users/leaving/memories/export", params={"limit": "2"})).json()
    rest = await product.get("/v1/users/leaving/memories/export", params={"cursor": first["next_cursor"]})
    assert {item["text"] for item in first["items"] + rest.json()["items"]} == {
        f"drawer {n} is mine" for n in range(3)
    }
    receipt = (await product.delete("/v1/users/leaving/memories")).json()
    assert (receipt["count"], receipt["complete"]) == (3, True)
    assert (await product.get("/v1/users/leaving/memories/export")).json()["items"] == []
    assert [item["text"] for item in (await product.get("/v1/memories")).json()["items"]] == ["drawer nine is mine"]


async def test_without_a_memory_service_its_paths_alone_are_unavailable(
    product: httpx.AsyncClient, memory: ServiceProcess
) -> None:
    await memory.stop()
    try:
        away = await product.post("/v1/memories/search", json={"query": "tea"})
        assert (away.status_code, away.json()["code"]) == (503, "unavailable")
        assert away.headers["retry-after"] == "1"
        assert (await product.get("/v1/runs")).status_code == 200
    finally:
        await memory.start()


async def test_the_longer_work_answers(product: httpx.AsyncClient) -> None:
    await remember(product, "the boiler room is on floor minus one")
    checked = (await product.post("/v1/memories/reconcile")).json()
    assert (checked["checked"], checked["missing"], checked["orphaned"], checked["stale"]) == (1, 0, 0, 0)
    plan = (await product.post("/v1/memories/consolidate", json={"dry_run": True})).json()
    assert (plan["groups"], plan["applied"]) == ([], False)
    body = {"candidates": ["the gate is green", "the gate is green", "the roof is flat"], "target": 2}
    distilled = (await product.post("/v1/memories/distil", json=body)).json()
    while not distilled["complete"]:
        goes_on = {"candidates": [], "resume": distilled["job_id"]}
        distilled = (await product.post("/v1/memories/distil", json=goes_on)).json()
    assert sorted(distilled["selected"]) == ["the gate is green", "the roof is flat"]
