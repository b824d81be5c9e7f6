"""What is recorded: enough to know who did what, and nothing that anybody should not read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.js.api import ConsumerConfig, DeliverPolicy

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext
from caisson.common.envelope import open_envelope
from caisson.common.subjects import EVENTS_STREAM
from tests.service.proxy.conftest import TOKEN
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, Gateway, ProxyProcess
from tests.support.raw_client import connected
from tests.support.raw_upstream import RawUpstream, fixed

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
async def told(gateway: Gateway, run: RunContext) -> AsyncIterator[Told]:
    """The audit records of the run, as (raw message, request)."""
    told: Told = []

    async def keep(message: Any) -> None:
        _, envelope = open_envelope(message.subject, message.data)
        assert envelope.type == "proxy.requested"
        assert (envelope.tenant_id, envelope.user_id, envelope.run_id) == ("acme", "u-1", run.run_id)
        told.extend((message.data.decode(), request) for request in envelope.data["requests"])

    subscription = await gateway.bus.jetstream.subscribe(
        f"caisson.evt.proxy.requested.acme.u-1.-.{run.run_id.replace('_', '_5f')}.-",
        stream=EVENTS_STREAM,
        cb=keep,
        config=ConsumerConfig(deliver_policy=DeliverPolicy.ALL),
    )
    yield told
    await subscription.unsubscribe()


async def test_each_request_is_one_audit_record(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext, told: Told
) -> None:
    upstream.answer = fixed(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello")
    target = "/metrics/v1/tenants/globex/secret-path?tenantId=x&api_key=hunter2-in-query"
    await proxy.ask(target, run, method="POST", body=b"hunter2-in-body")
    await proxy.ask("/metrics/v2/forbidden", run)
    await proxy.ask("/nowhere/x", run)

    await eventually(lambda: len(told) == 3)

    raw = "".join(message for message, _ in told)
    carried, denied, failed = (request for _, request in told)
    assert 0 < carried.pop("duration_ms") < 5000
    assert carried.pop("started_at").endswith("Z")
    assert carried == {
        "upstream": "metrics",
        "method": "POST",
        "path": "/v1/**",
        "status": 201,
        "reason": None,
        "bytes_in": 15,
        "bytes_out": 5,
        "rewritten": ["path", "query"],
        "credential": "run",
        "credential_echoed": False,
    }
    assert (denied["upstream"], denied["path"], denied["status"]) == ("metrics", None, 403)
    assert denied["reason"] == "path_denied"
    assert (failed["upstream"], failed["path"], failed["reason"]) == ("nowhere", "/**", "upstream_unreachable")
    for kept_back in (TOKEN, "hunter2", "globex", "secret-path"):
        assert kept_back not in raw


async def test_a_client_that_goes_away_is_recorded(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext, told: Told
) -> None:
    async def silent(received: Any) -> None:
        await received.reader.read(-1)

    upstream.answer = silent
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await wire.send(b"GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: upstream.received)
    await eventually(lambda: told)
    assert told[0][1]["status"] == 499


async def test_a_denial_is_reported_within_moments(proxy: ProxyProcess, gateway: Gateway, run: RunContext) -> None:
    for _ in range(5):
        await proxy.ask("/metrics/v2/x?token=hunter2", run)

    events = await gateway.reported(run, 5, within_s=0.5)

    assert {event.snippet for event in events} == {"GET /metrics/v2/x"}
    assert len({event.id for event in events}) == 5


async def test_reports_wait_for_the_gateway_and_keep_their_ids(
    proxy: ProxyProcess, gateway: Gateway, run: RunContext
) -> None:
    gateway.is_away = True
    try:
        await proxy.ask("/metrics/v2/x", run)
        await eventually(lambda: len(gateway.events_of(run)) >= 2)
    finally:
        gateway.is_away = False
    ids = {event.id for event in gateway.events_of(run)}
    assert len(ids) == 1
    await gateway.reported(run, len(gateway.events_of(run)) + 1)
    assert {event.id for event in gateway.events_of(run)} == ids


async def test_snippets_hold_no_credential_and_no_query(
    proxy: ProxyProcess, gateway: Gateway, run: RunContext
) -> None:
    targets = (
        "/metrics/v2/sk-live-0123456789abcdefghij/x?key=hunter2",
        "http://user:hunter2@evil/metrics/v1/x",
        "/metrics/v2/" + "x/" * 300,
    )
    for target in targets:
        assert (await proxy.ask(target, run)).status in {400, 403}

    events = await gateway.reported(run, len(targets))

    assert [event.snippet for event in events][:2] == ["GET /metrics/v2/***/x", "GET http://***@evil/metrics/v1/x"]
    assert all(len(event.snippet or "") <= 200 for event in events)
