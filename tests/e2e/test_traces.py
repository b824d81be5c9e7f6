"""One tree of spans from the caller's request through gateway, relay, runner, step and proxy; no secret in any."""

import secrets

import httpx

from tests.support.eventually import eventually
from tests.support.planes import Plane
from tests.support.trace_collector import Collector, Told

COMMAND = 'curl -s "$API_HOST/metrics/v1/totals?tenantId=$TENANT_ID"'
IN_A_RUN = {
    ("gateway", "POST /v1/exec"),
    ("gateway", "caisson.evt.run.queued"),
    ("gateway", "caisson.evt.run.finished"),
    ("runner", "run"),
    ("runner", "step"),
    ("runner", "caisson.rpc.ledger.finish_step"),
    ("gateway", "caisson.rpc.ledger.finish_step"),
    ("proxy", "GET metrics"),
}
IN_A_RECALL = {
    ("gateway", "POST /v1/memories/search"),
    ("gateway", "caisson.rpc.memory.search"),
    ("memory", "caisson.rpc.memory.search"),
}


async def asked(plane: Plane, path: str, body: dict[str, object]) -> tuple[str, str]:
    """Send a request under a span of the caller's own; return its trace and that span."""
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    headers = {
        "Authorization": f"Bearer {plane.stack.platform_key}",
        "Caisson-Tenant": "acme",
        "Caisson-User": "u-1",
        "traceparent": f"00-{trace}-{span}-01",
    }
    async with httpx.AsyncClient(base_url=plane.stack.url, headers=headers, timeout=30) as product:
        (await product.post(path, json=body)).raise_for_status()
    return trace, span


async def told(traces: Collector, trace: str, wanted: set[tuple[str, str]]) -> dict[str, Told]:
    """Return the spans of a trace once everything wanted is among them."""

    async def is_whole() -> bool:
        return wanted <= {(span.service, span.name) for span in traces.of(trace).values()}

    await eventually(is_whole, within_s=10)
    return traces.of(trace)


def ancestors(spans: dict[str, Told], span: Told) -> list[str]:
    """Return the names above a span but for the web framework's, nearest first; last the caller's own, by its id."""
    above = []
    while span.parent in spans:
        span = spans[span.parent]
        above.append(span.name)
    return [*(name for name in above if not name.startswith("fastapi.")), span.parent]


def one(spans: dict[str, Told], service: str, name: str) -> Told:
    return next(span for span in spans.values() if (span.service, span.name) == (service, name))


async def test_a_run_is_one_tree_from_the_request_to_the_proxied_call(plane: Plane, traces: Collector) -> None:
    trace, root = await asked(plane, "/v1/exec", {"command": COMMAND})
    spans = await told(traces, trace, IN_A_RUN)
    assert {ancestors(spans, span)[-1] for span in spans.values()} == {root}
    request = ["POST /v1/exec", root]
    assert ancestors(spans, one(spans, "runner", "step")) == ["run", *request]
    assert ancestors(spans, one(spans, "proxy", "GET metrics")) == request
    assert ancestors(spans, one(spans, "gateway", "caisson.rpc.ledger.finish_step"))[1:3] == ["run", request[0]]
    step, call = one(spans, "runner", "step"), one(spans, "proxy", "GET metrics")
    assert step.attributes["caisson.tenant"] == call.attributes["caisson.tenant"] == "acme"
    assert step.attributes["caisson.run"] == call.attributes["caisson.run"]


async def test_a_recall_is_one_tree_through_the_memory_service(plane: Plane, traces: Collector) -> None:
    trace, root = await asked(plane, "/v1/memories/search", {"query": "which harbour is home?"})
    spans = await told(traces, trace, IN_A_RECALL)
    below = one(spans, "memory", "caisson.rpc.memory.search")
    assert ancestors(spans, below) == ["caisson.rpc.memory.search", "POST /v1/memories/search", root]


async def test_no_span_holds_a_secret_a_command_or_a_query(
    plane: Plane, traces: Collector, tokens: dict[str, str]
) -> None:
    word = f"w{secrets.token_hex(8)}"
    run, _ = await asked(plane, "/v1/exec", {"command": f"echo {word}; {COMMAND}"})
    await told(traces, run, IN_A_RUN)
    recall, _ = await asked(plane, "/v1/memories/search", {"query": f"where is {word}?"})
    await told(traces, recall, IN_A_RECALL)
    keyring = plane.stack.folder.keyring()
    hidden = [word, *tokens.values(), *keyring.nats_passwords.values(), keyring.channel_key, plane.stack.platform_key]
    assert not [secret for secret in hidden if secret.encode() in traces.raw]
