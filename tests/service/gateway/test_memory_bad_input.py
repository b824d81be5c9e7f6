"""Bad input to `/v1/memories` is refused with the name of its field and the limit, and nothing of it is stored."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground
from tests.support.hostile import JSON, VALID

pytestmark = pytest.mark.usefixtures("memory")

BODIES = {name: body for name, body in VALID.items() if "/v1/memories" in name}
TEXTS = ['"a\\u0000b"', '"\\ud83d"']
NUMBERS = ["NaN", "Infinity", "1e400", "-1e400", "1" + "0" * 400]
WRONG: dict[type, list[str]] = {
    str: ["7", "true", "[]", "{}", *TEXTS],
    int: ['"7"', "[]", "1.5", *NUMBERS],
    float: ['"7"', "[]", "{}", *NUMBERS],
    bool: ['"true"', "1", "[]"],
    list: ['"x"', "{}", "7"],
    dict: ['"x"', "[]", "7"],
}
LONG = "x" * 300_000
MANY = [f"tag {number}" for number in range(65)]
YEARS = "2 to 9998"
SAY = "POST /v1/memories"
ASK = "POST /v1/memories/search"
DISTIL = "POST /v1/memories/distil"

LIMITS: list[tuple[str, dict[str, Any], str, str, str]] = [
    (SAY, {"text": LONG}, "text", "262144", "a text over 256 KiB"),
    (SAY, {"subject": "x" * 257}, "subject", "256", "a long subject"),
    (SAY, {"subject": " "}, "subject", "256", "a blank subject"),
    (SAY, {"subject": "kettle", "attribute": "x" * 257}, "attribute", "256", "a long attribute"),
    (SAY, {"external_id": "x" * 257}, "external_id", "256", "a long external id"),
    (SAY, {"external_id": ""}, "external_id", "256", "an empty external id"),
    (SAY, {"tags": MANY}, "tags", "64", "too many tags"),
    (SAY, {"tags": [""]}, "tags", "256", "an empty tag"),
    (SAY, {"metadata": {"a": LONG}}, "metadata", "16384", "much metadata"),
    (SAY, {"scopes": ["tenant"] * 17}, "scopes", "16", "many scopes"),
    (SAY, {"importance": 1.01}, "importance", "1", "over the bound"),
    (SAY, {"confidence": -0.01}, "confidence", "0", "under the bound"),
    (SAY, {"confirmations": -1}, "confirmations", "0", "under the bound"),
    (SAY, {"confirmations": 1_000_001}, "confirmations", "1000000", "more than a column holds, in the end"),
    (SAY, {"outcome": "x" * 4_097}, "outcome", "4096", "a long outcome"),
    (SAY, {"provenance": {"source": "x" * 1_025}}, "provenance.source", "1024", "a long source"),
    (SAY, {"provenance": {"session_id": ""}}, "provenance.session_id", "128", "no token of a subject"),
    (SAY, {"provenance": {"session_id": "x" * 129}}, "provenance.session_id", "128", "too long for a subject"),
    (SAY, {"provenance": {"session_id": "a\nb"}}, "provenance.session_id", "printable", "a line end"),
    (SAY, {"provenance": {"run_id": LONG}}, "provenance.run_id", "128", "what would break the line to NATS"),
    (SAY, {"provenance": {"kind": "god"}}, "provenance.kind", "person", "no kind"),
    (SAY, {"layer": "working"}, "layer", "semantic", "a layer that is never stored"),
    (SAY, {"valid_from": "0001-01-01T00:00:00Z"}, "valid_from", YEARS, "minus infinity, to PostgreSQL's driver"),
    (SAY, {"valid_to": "9999-12-31T23:59:59.999999Z"}, "valid_to", YEARS, "infinity"),
    (SAY, {"expires_at": "9999-12-31T23:59:59-23:59"}, "expires_at", YEARS, "out of the calendar in UTC"),
    (SAY, {"valid_from": "2026-02-30T00:00:00Z"}, "valid_from", "", "no day"),
    (SAY, {"valid_from": "2026-02-20T00:00:00"}, "valid_from", "timezone", "no zone"),
    (SAY, {"valid_from": "2026-02-20"}, "valid_from", "RFC 3339", "a day"),
    (
        SAY,
        {"valid_from": "2026-02-02T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"},
        "valid_to",
        "after",
        "backwards",
    ),
    (SAY, {"memories": []}, "memories", "1", "no memory"),
    (SAY, {"memories": [{"text": "tea"}] * 101}, "memories", "100", "too many memories"),
    (SAY, {"memories": [{"text": "tea", "user_id": "eve"}]}, "memories.0.user_id", "", "a claim inside a list"),
    (ASK, {"query": "tea " * 2_001}, "query", "8000", "a long query"),
    (ASK, {"query": "\u200b"}, "query", "", "invisible"),
    (ASK, {"query": "tea", "k": 0}, "k", "1", "under the bound"),
    (ASK, {"query": "tea", "k": 101}, "k", "100", "over the bound"),
    (ASK, {"query": "tea", "token_budget": 0}, "token_budget", "1", "under the bound"),
    (ASK, {"query": "tea", "token_budget": 100_001}, "token_budget", "100000", "over the bound"),
    (ASK, {"query": "tea", "layers": ["all"]}, "layers.0", "semantic", "no layer"),
    (ASK, {"query": "tea", "session_id": "x" * 9_000}, "session_id", "128", "longer than an index row"),
    (ASK, {"query": "tea", "session_id": ""}, "session_id", "128", "no token of a subject"),
    (ASK, {"query": "tea", "on_degraded": "maybe"}, "on_degraded", "serve", "no choice"),
    (ASK, {"query": "tea", "as_of": "0001-01-01T00:00:00Z"}, "as_of", YEARS, "minus infinity"),
    ("POST /v1/memories/feedback", {"retrieval_id": "x", "reward": -1.01}, "reward", "-1", "under the bound"),
    (DISTIL, {"candidates": ["x"] * 10_001}, "candidates", "10000", "too many candidates"),
    (DISTIL, {"candidates": []}, "candidates", "", "nothing to distil"),
    (DISTIL, {"candidates": [LONG]}, "candidates.0", "262144", "a candidate over 256 KiB"),
    (DISTIL, {"candidates": ["x"], "target": 0}, "target", "1", "under the bound"),
    (DISTIL, {"candidates": ["x"], "target": 1_001}, "target", "1000", "over the bound"),
]


def _cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


TARGETS: list[tuple[str, int, str | None, str]] = [
    ("/v1/memories?limit=0", 422, "limit", "no page"),
    ("/v1/memories?limit=201", 422, "limit", "a large page"),
    ("/v1/memories?limit=1e2", 422, "limit", "no whole number"),
    ("/v1/memories?layer=all", 422, "layer", "no layer"),
    ("/v1/memories?status=superseded", 422, "status", "what no list tells"),
    ("/v1/memories?as_of=yesterday", 422, "as_of", "no time"),
    ("/v1/memories?as_of=2026-01-01T00:00:00", 422, "as_of", "a time without its zone"),
    ("/v1/memories?as_of=0001-01-01T00:00:00Z", 422, "as_of", "minus infinity"),
    ("/v1/memories?user_id=eve", 422, "user_id", "a claim in the query"),
    ("/v1/memories?cursor=!", 422, "cursor", "no cursor"),
    (f"/v1/memories?cursor={_cursor('mem_x')}", 422, "cursor", "a cursor of a list of runs"),
    (f"/v1/memories?cursor={_cursor('export:mem_x')}", 422, "cursor", "a cursor of an export"),
    (f"/v1/memories?cursor={_cursor('memories:x@2026-01-01')}", 422, "cursor", "tampered: a day"),
    (f"/v1/memories?cursor={_cursor('memories:x@0001-01-01T00:00:00+00:00')}", 422, "cursor", "tampered: no end"),
    (f"/v1/memories?cursor={_cursor('memories:x@9999-12-31T23:59:59-23:59')}", 422, "cursor", "tampered: out of UTC"),
    (f"/v1/users/u-1/memories/export?cursor={_cursor('memories:x')}", 422, "cursor", "a cursor of a list"),
    ("/v1/users/u-1/memories/export?limit=0", 422, "limit", "no page"),
    ("/v1/users/%C2%A0/memories/export", 422, "user_id", "an unprintable user"),
    (f"/v1/users/{'x' * 129}/memories/export", 422, "user_id", "a long user"),
    ("/v1/memories/..%2f..%2fkeys", 404, None, "a path inside an id"),
    ("/v1/memories/%00", 422, None, "NUL in an id"),
    ("/v1/memories/%ff%fe", 404, None, "broken UTF-8 in an id"),
    ("/v1/memories/" + "x" * 10_000, 404, None, "a very long id"),
    ("/v1/memories/%25%27%20OR%201=1--", 404, None, "a statement for an id"),
    ("/v1/memories/mem_x/history?as_of=0", 422, "as_of", "a number for a time"),
]


def wrong_bodies() -> Iterator[tuple[str, str, bytes]]:
    """Put, at each place of each body, what does not belong there."""
    for name, body in BODIES.items():
        for field, value in body.items():
            for wrong in WRONG.get(type(value), []):
                if wrong == "{}" and value == {}:
                    continue
                others = {other: kept for other, kept in body.items() if other != field}
                text = json.dumps(others)[:-1] + (", " if others else "") + f"{json.dumps(field)}: {wrong}}}"
                yield name, field, text.encode()


async def test_what_does_not_belong_in_a_field_is_refused_by_its_name(product: httpx.AsyncClient) -> None:
    seen = 0
    for name, field, body in wrong_bodies():
        method, path = name.split(" ")
        refused = await product.request(method, path.format(memory_id="mem_x"), content=body, headers=JSON)
        told = refused.json()
        assert refused.headers["content-type"] == "application/problem+json", body
        assert refused.status_code == 422, (name, body, told)
        fields = {error["field"].split(".")[0] for error in told["errors"]}
        assert fields & {field, "body"}, (name, body, told)
        seen += 1
    assert seen > 150
    assert await _stored(product) == 0


@pytest.mark.parametrize(("name", "body", "field", "limit", "reason"), LIMITS, ids=[row[4] for row in LIMITS])
async def test_what_is_over_a_limit_is_told_field_and_limit(
    product: httpx.AsyncClient, name: str, body: dict[str, Any], field: str, limit: str, reason: str
) -> None:
    method, path = name.split(" ")
    if name == SAY and "memories" not in body:
        body = {"text": "the kettle is new", **body}
    refused = await product.request(method, path, json=body)
    told = refused.json()
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json"), told
    named = {error["field"].removeprefix("memories.0.") for error in told["errors"]}
    assert field.removeprefix("memories.0.") in named, told
    assert limit in json.dumps(told["errors"]), told
    assert await _stored(product) == 0


@pytest.mark.parametrize(("target", "status", "field", "reason"), TARGETS, ids=[row[3] for row in TARGETS])
async def test_a_bad_target_is_refused(
    product: httpx.AsyncClient, target: str, status: int, field: str | None, reason: str
) -> None:
    refused = await product.get(target)
    assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json"), (
        refused.text
    )
    if field is not None:
        assert field in {error["field"] for error in refused.json()["errors"]}


async def test_a_path_inside_a_user_is_the_name_of_that_user_and_leads_nowhere(product: httpx.AsyncClient) -> None:
    answer = await product.get("/v1/users/..%2f..%2fkeys/memories/export")
    assert (answer.status_code, answer.json()) == (200, {"items": [], "next_cursor": None})


async def test_what_is_remembered_at_the_limits_can_be_read_again(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient
) -> None:
    """The longest ids of any script, the first and last years: listed, found, told as facts to the bus."""
    body = {
        "text": "the kettle is old",
        "valid_from": "0002-01-01T00:00:00Z",
        "valid_to": "9998-12-31T23:59:59.999999Z",
        "expires_at": "9998-12-31T23:59:59.999999+23:59",
        "confirmations": 1_000_000,
        "external_id": "😀" * 256,
        "provenance": {"run_id": "😀" * 128, "session_id": "😀" * 128, "source": "😀" * 1_024},
        "tags": ["😀" * 256] * 64,
    }
    async with ground.client(gateway, tenant="😀" * 128, user="😀" * 128) as longest:
        for asker in (product, longest):
            assert (await asker.post("/v1/memories", json=body)).status_code == 201
            assert [item["text"] for item in (await asker.get("/v1/memories")).json()["items"]] == [body["text"]]
            asked = {"query": "which kettle", "session_id": "😀" * 128}
            assert len((await asker.post("/v1/memories/search", json=asked)).json()["hits"]) == 1


async def _stored(product: httpx.AsyncClient) -> int:
    usage: dict[str, int] = (await product.get("/v1/memories/usage")).json()
    return usage["tenant_bytes"]
