"""A context lives as long as its lease, and not a moment longer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext
from caisson.common.subjects import CONTEXTS_STREAM
from caisson.stack.nats import SERVICES, EmbeddedNats
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, Gateway, ProxyProcess, a_context
from tests.support.raw_client import connected
from tests.support.raw_upstream import RawUpstream, Received


async def test_a_revoked_context_is_refused_at_once(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    assert (await proxy.ask("/open/x", run)).status == 200

    await gateway.revoke(run)

    async def is_refused() -> bool:
        reply = await proxy.ask("/open/x", run)
        return reply.status == 403 and reply.code == "context_unknown"

    await eventually(is_refused, within_s=0.5)


async def test_a_context_dies_with_its_time_to_live_and_a_renewal_prolongs_it(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    dies, lives = await gateway.put(a_context(ttl_s=0.6)), a_context(ttl_s=0.6)
    began = monotonic()

    async def one_dies_and_one_lives() -> bool:
        await gateway.put(lives)
        assert (await proxy.ask("/open/x", lives)).status == 200
        return (await proxy.ask("/open/x", dies)).status == 403

    assert (await proxy.ask("/open/x", dies)).status == 200
    await eventually(one_dies_and_one_lives)

    assert 0.5 < monotonic() - began < 2
    assert (await proxy.ask("/open/x", dies)).code == "context_unknown"


async def test_what_runs_when_the_context_ends_is_cut(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    gone = asyncio.Event()

    async def stream(received: Received) -> None:
        await received.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await received.reader.read(-1)
        gone.set()

    upstream.answer = stream
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await wire.send(b"GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n")
        await wire.reader.readuntil(b"a\r\n")
        await gateway.revoke(run)
        assert await asyncio.wait_for(wire.ended(), 1)
    await asyncio.wait_for(gone.wait(), 1)


async def test_new_credentials_and_datasets_are_used_from_the_next_request_on(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    assert (await proxy.ask("/metrics/v1/datasets/ds-2/x", run)).code == "dataset_denied"

    await gateway.put(run.model_copy(update={"datasets": ["ds-2"]}))

    async def passes() -> bool:
        return (await proxy.ask("/metrics/v1/datasets/ds-2/x", run)).status == 200

    await eventually(passes)
    assert (await proxy.ask("/metrics/v1/datasets/ds-1/x", run)).code == "dataset_denied"


async def test_a_value_that_is_no_context_of_its_key_is_unknown(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    cases = {
        "req_json": b"{}",
        "req_nothing": b"",
        "req_misplaced": a_context().model_dump_json().encode(),
        "req_field": a_context().model_dump_json().replace("{", '{"admin":true,', 1).encode(),
    }
    for key, body in cases.items():
        await gateway.bus.jetstream.publish(f"$KV.contexts.{key}", body, stream=CONTEXTS_STREAM)
        reply = await proxy.ask("/open/x", None, headers=(f"X-Request-Id: {key}",))
        assert reply.code == "context_unknown", key


@pytest.fixture
async def own(
    tmp_path: Path, shared_upstream: RawUpstream
) -> AsyncIterator[tuple[EmbeddedNats, Gateway, ProxyProcess]]:
    """A NATS, a gateway and a proxy that a test may ruin."""
    passwords = {name: "p" + "x" * 20 + name for name in SERVICES}
    nats = EmbeddedNats(tmp_path / "nats", passwords=passwords)
    await nats.start()
    gateway = Gateway(nats)
    await gateway.start()
    upstreams = (
        f"upstreams: {{open: {{base_url: 'http://127.0.0.1:{shared_upstream.port}', "
        "allow: [{methods: [GET], path: /**}]}}"
    )
    proxy = ProxyProcess(nats, tmp_path, upstreams, {})
    await proxy.start()
    shared_upstream.reset()
    yield nats, gateway, proxy
    await proxy.stop()
    await gateway.bus.stop()
    await nats.stop()


async def test_the_watch_is_built_again_after_nats_was_wiped(
    own: tuple[EmbeddedNats, Gateway, ProxyProcess],
) -> None:
    nats, gateway, proxy = own
    old = await gateway.put(a_context())
    assert (await proxy.ask("/open/x", old)).status == 200

    await nats.stop()
    await eventually(lambda: _fails(proxy, "contexts"))
    stranger = a_context()
    assert (await proxy.ask("/open/x", stranger)).code == "contexts_unavailable"
    assert (await proxy.ask("/open/x", old)).status == 200
    await nats.erase()
    await nats.start()
    assert (await proxy.ask("/open/x", stranger)).code == "contexts_unavailable"

    await eventually(lambda: gateway.bus.connection.is_connected, within_s=10)
    await gateway.redeclare()
    new = await gateway.put(a_context())
    await eventually(proxy.is_ready, within_s=10)

    assert (await proxy.ask("/open/x", new)).status == 200
    assert (await proxy.ask("/open/x", old)).status == 200
    await gateway.revoke(new)

    async def is_refused() -> bool:
        return (await proxy.ask("/open/x", new)).status == 403

    await eventually(is_refused)
    assert (await proxy.ask("/open/x", stranger)).code == "context_unknown"


async def test_a_revocation_during_an_outage_holds_afterwards(
    own: tuple[EmbeddedNats, Gateway, ProxyProcess],
) -> None:
    _, gateway, proxy = own
    run = await gateway.put(a_context())
    assert (await proxy.ask("/open/x", run)).status == 200
    consumers = await gateway.bus.jetstream.consumers_info(CONTEXTS_STREAM)

    for consumer in consumers:
        await gateway.bus.jetstream.delete_consumer(CONTEXTS_STREAM, consumer.name)
    await gateway.revoke(run)

    async def is_refused() -> bool:
        return (await proxy.ask("/open/x", run)).status == 403

    await eventually(is_refused)
    await eventually(proxy.is_ready)


async def test_an_expired_value_does_not_come_back_to_life_with_a_new_watch(
    own: tuple[EmbeddedNats, Gateway, ProxyProcess],
) -> None:
    _, gateway, proxy = own
    run = await gateway.put(a_context(ttl_s=0.5))
    assert (await proxy.ask("/open/x", run)).status == 200
    await eventually(lambda: _is_refused(proxy, run))

    for consumer in await gateway.bus.jetstream.consumers_info(CONTEXTS_STREAM):
        await gateway.bus.jetstream.delete_consumer(CONTEXTS_STREAM, consumer.name)
    await eventually(lambda: _fails(proxy, "contexts"))
    await eventually(proxy.is_ready)

    assert (await proxy.ask("/open/x", run)).code == "context_unknown"


async def _fails(proxy: ProxyProcess, check: str) -> bool:
    return check in await proxy.failing()


async def _is_refused(proxy: ProxyProcess, run: RunContext) -> bool:
    return (await proxy.ask("/open/x", run)).status == 403
