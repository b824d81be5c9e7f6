"""Bad input gets a typed refusal that names the field, and nothing that was accepted is lost by it."""

import json

import httpx
import pytest

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground
from tests.support.product import submit, the_run
from tests.support.raw_http import exchange

LIMIT = 4 * 1024 * 1024
STEP_TIMEOUT = "steps.0.bash.timeout_s"
COMMAND = "steps.0.bash.command"
FINE = b'{"steps":[{"bash":{"command":"true"}}]}'


def command(text: str) -> bytes:
    return json.dumps({"steps": [{"bash": {"command": text}}]}).encode()


BODIES: list[tuple[bytes, int, str, str | None, str]] = [
    (b"", 422, "invalid_input", "body", "nothing"),
    (b"{", 400, "not_json", "body", "cut off"),
    (b"null", 422, "invalid_input", "body", "nothing, as JSON"),
    (b"[]", 422, "invalid_input", "body", "a list"),
    (b'"x"', 422, "invalid_input", "body", "a string"),
    (b"\xff\xfe", 400, "not_json", "body", "broken UTF-8"),
    (b'{"steps":[{"bash":{"command":"\xc3"}}]}', 400, "not_json", "body", "a letter cut in half"),
    (command("a\x00b"), 422, "invalid_input", COMMAND, "NUL"),
    (command("\ud83d"), 422, "invalid_input", COMMAND, "half an emoji"),
    (command("x" * 300_000), 422, "payload_too_large", COMMAND, "a command of 300 kB"),
    (command(" "), 422, "invalid_input", COMMAND, "a blank command"),
    (b'{"steps":[]}', 422, "invalid_input", "steps", "no step"),
    (b'{"steps":[{"bash":{"command":["true"]}}]}', 422, "invalid_input", COMMAND, "a list"),
    (
        b'{"steps":[{"bash":{"command":"x","timeout_s":1e16}}]}',
        422,
        "invalid_input",
        STEP_TIMEOUT,
        "huge",
    ),
    (
        b'{"steps":[{"bash":{"command":"x","timeout_s":1e14}}]}',
        422,
        "limit_exceeded",
        STEP_TIMEOUT,
        "long",
    ),
    (FINE[:-1] + b',"bogus":1}', 422, "invalid_input", "bogus", "an unknown field"),
    (FINE[:-1] + b',"tenant_id":"globex"}', 422, "invalid_input", "tenant_id", "the body never names the tenant"),
    (FINE[:-1] + b',"steps":[]}', 422, "invalid_input", "body", "a field twice"),
    (FINE[:-1] + b',"limits":{"memory_mib":NaN}}', 422, "invalid_input", "body", "NaN"),
    (FINE[:-1] + b',"limits":{"pids":"all"}}', 422, "invalid_input", "limits.pids", "a word for a number"),
    (FINE[:-1] + b',"limits":{"pids":-1}}', 422, "invalid_input", "limits.pids", "negative"),
    (FINE[:-1] + b',"env":{"TENANT_ID":"globex"}}', 422, "invalid_input", "env.TENANT_ID", "a reserved name"),
    (FINE[:-1] + b',"session_id":"ses_0"}', 404, "not_found", None, "a session that is not there"),
    (FINE[:-1] + b',"metadata":' + b'{"a":' * 40 + b"1" + b"}" * 41, 422, "invalid_input", None, "deep nesting"),
    (b"[" * 200_000, 400, "not_json", "body", "very deep nesting"),
]

TARGETS = [
    ("/v1/runs/%00", 422, "NUL in the path"),
    ("/v1/runs?cursor=%00", 422, "NUL in the query"),
    ("/v1/runs?limit=1&limit=x", 422, "a parameter twice"),
    ("/v1/runs?limit=0", 422, "no page"),
    ("/v1/runs?limit=9999999999999999999999", 422, "a very large page"),
    ("/v1/runs?cursor=!", 422, "no cursor"),
    ("/v1/runs?status=lost", 422, "no status"),
    ("/v1/runs?state=queued", 422, "no parameter: an unknown filter would filter nothing"),
    ("/v1/runs/run_0?wait_s=nan", 422, "NaN seconds"),
    ("/v1/runs/run_0?wait_s=61", 422, "too long a wait"),
    ("/v1/runs/" + "x" * 10_000, 404, "a very long id"),
    ("/v1/runs/%ff%fe", 404, "broken UTF-8 in the path"),
    ("/v1/runs/..%2f..%2fkeys", 404, "a path inside an id"),
    ("/v1/none", 404, "no such path"),
    ("/v1/security-events?since=now", 422, "no time"),
]

HEADERS = [
    ("Caisson-Tenant: other", 422, "a second tenant"),
    ("Caisson-User: other", 422, "a second user"),
    ("Idempotency-Key: \xe9", 422, "a key that is not ASCII"),
    ("Idempotency-Key: " + "k" * 256, 422, "a key too long"),
    ("Idempotency-Key:", 422, "an empty key"),
]


@pytest.mark.parametrize(("body", "status", "code", "field", "reason"), BODIES)
async def test_a_bad_body_is_refused_with_its_code_and_field(
    product: httpx.AsyncClient, body: bytes, status: int, code: str, field: str | None, reason: str
) -> None:
    refused = await product.post("/v1/runs", content=body, headers={"Content-Type": "application/json"})
    told = refused.json()
    assert (refused.status_code, told["code"], told["status"]) == (status, code, status), reason
    assert refused.headers["content-type"] == "application/problem+json"
    if field is not None:
        assert [error["field"] for error in told["errors"]] == [field]
    assert (await product.get("/v1/runs")).json()["items"] == [], "nothing was stored"


async def test_what_looks_odd_and_can_be_stored_is_kept_as_it_is(product: httpx.AsyncClient) -> None:
    odd = "echo '😀\u202e\ufeff\u2028' # 株式会社\t\x1b[31m" + "x" * 120_000
    run_id = await submit(product, odd, metadata={"\u2028😀": ["\x7f", 1e15, -0.5, None]})
    run = await the_run(product, run_id)
    assert run["metadata"] == {"\u2028😀": ["\x7f", 1e15, -0.5, None]}


@pytest.mark.parametrize(("target", "status", "reason"), TARGETS)
async def test_a_bad_target_is_refused(product: httpx.AsyncClient, target: str, status: int, reason: str) -> None:
    refused = await product.get(target)
    assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json"), reason


@pytest.mark.parametrize(("line", "status", "reason"), HEADERS)
async def test_a_bad_header_is_refused(
    ground: Ground, gateway: ServiceProcess, tenant: str, line: str, status: int, reason: str
) -> None:
    head = [*head_of(ground, tenant), line]
    answer = await exchange(gateway, "POST", "/v1/runs", head, FINE)
    assert answer.status == status, reason


async def test_a_request_with_two_lengths_is_no_request(ground: Ground, gateway: ServiceProcess, tenant: str) -> None:
    answer = await exchange(gateway, "POST", "/v1/runs", [*head_of(ground, tenant), "Content-Length: 1"], b"")
    assert answer.status == 400


def head_of(ground: Ground, tenant: str) -> list[str]:
    return [
        f"Authorization: Bearer {ground.platform_key}",
        f"Caisson-Tenant: {tenant}",
        "Caisson-User: u-1",
        "Content-Type: application/json",
    ]


@pytest.mark.parametrize("chunked", ["with its length", "in chunks"])
async def test_a_body_over_the_limit_is_refused_before_it_is_held(
    ground: Ground, gateway: ServiceProcess, tenant: str, chunked: str
) -> None:
    padding = b" " * (LIMIT - len(FINE))
    head = head_of(ground, tenant)
    as_chunks = chunked == "in chunks"
    fits = await exchange(gateway, "POST", "/v1/runs", head, FINE + padding, chunked=as_chunks)
    assert fits.status == 202
    for path, more in (("/v1/runs", 1), ("/v1/sessions", 1), ("/v1/exec", 3 * LIMIT)):
        refused = await exchange(gateway, "POST", path, head, FINE + padding + b" " * more, chunked=as_chunks)
        assert (refused.status, json.loads(refused.body)["code"]) == (413, "body_too_large")


async def test_a_method_that_a_path_does_not_have_is_told_so(product: httpx.AsyncClient) -> None:
    refused = await product.patch("/v1/runs")
    assert (refused.status_code, refused.headers["content-type"]) == (405, "application/problem+json")
    assert "POST" in refused.headers["allow"] or "GET" in refused.headers["allow"]
