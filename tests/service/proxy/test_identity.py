"""Who is calling: the channel says it, and the request may only repeat it."""

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext, SealedCredentials
from tests.service.proxy.conftest import TOKEN
from tests.support.proxies import CHANNEL_KEY, Gateway, ProxyProcess, a_context, sealed
from tests.support.raw_client import connected
from tests.support.raw_upstream import RawUpstream


async def test_a_request_on_a_runs_channel_reaches_the_upstream_as_that_run(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    reply = await proxy.ask("/metrics/v1/totals?a=1", run)

    assert (reply.status, reply.body) == (200, b"ok")
    assert (
        upstream.last.head
        == (
            f"GET /v1/totals?a=1&tenantId=acme HTTP/1.1\r\nHost: 127.0.0.1:{upstream.port}\r\n"
            f"X-Tenant-Id: acme\r\nAuthorization: Bearer {TOKEN}\r\nAccept-Encoding: identity\r\n"
        ).encode()
    )


async def test_the_request_id_may_be_repeated_on_a_channel_and_does_not_go_upstream(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    reply = await proxy.ask("/metrics/v1/totals", run, headers=(f"X-Request-Id: {run.request_id}",))

    assert reply.status == 200
    assert run.request_id.encode() not in upstream.last.head


async def test_another_request_id_on_a_channel_is_refused_and_reported_for_the_channels_run(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    other = await gateway.put(a_context("globex"))

    reply = await proxy.ask("/metrics/v1/totals", run, headers=(f"X-Request-Id: {other.request_id}",))

    assert (reply.status, reply.code) == (403, "request_id_mismatch")
    assert not upstream.received
    events = await gateway.reported(run, 1)
    assert [(event.kind, event.reason) for event in events] == [("proxy_denied", "request_id_mismatch")]


async def test_a_bare_connection_is_known_by_its_request_id(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    reply = await proxy.ask("/metrics/v1/totals", None, headers=(f"x-request-id: {run.request_id}",))

    assert reply.status == 200
    assert upstream.last.values("X-Tenant-Id") == ["acme"]


async def test_a_bare_connection_without_a_known_request_id_is_refused(
    proxy: ProxyProcess, upstream: RawUpstream
) -> None:
    before = await proxy.counter("caisson_security_proxy_denied_total", reason="context_unknown")

    for headers in ((), ("X-Request-Id: req_nobody",), ("X-Request-Id: a.b>*",), ("X-Request-Id: ",)):
        reply = await proxy.ask("/metrics/v1/totals", None, headers=headers)
        assert (reply.status, reply.code) == (403, "context_unknown"), headers

    assert not upstream.received
    assert await proxy.counter("caisson_security_proxy_denied_total", reason="context_unknown") == before + 4


async def test_two_different_request_ids_are_refused(proxy: ProxyProcess, run: RunContext) -> None:
    headers = (f"X-Request-Id: {run.request_id}", "X-Request-Id: req_other")

    assert (await proxy.ask("/metrics/v1/totals", None, headers=headers)).code == "request_id_mismatch"


async def test_a_channel_with_a_wrong_proof_is_refused_and_closed(proxy: ProxyProcess, run: RunContext) -> None:
    for preamble in (
        write_preamble(run.request_id, b"not the key"),
        write_preamble(run.request_id, CHANNEL_KEY.encode()).replace(b"req_", b"rex_"),
        write_preamble(run.request_id, CHANNEL_KEY.encode())[:12] + b"\x21\x11\x00\x0c" + bytes(12),
    ):
        async with connected(proxy.addresses["proxy"]) as wire:
            await wire.send(preamble + b"GET /metrics/v1/totals HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await wire.reply()).code == "channel_refused"
            assert await wire.ended()


async def test_a_preamble_may_arrive_in_pieces(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    async with connected(proxy.addresses["proxy"]) as wire:
        for byte in write_preamble(run.request_id, CHANNEL_KEY.encode()):
            await wire.send(bytes([byte]))
        await wire.send(b"GET /metrics/v1/totals HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await wire.reply()).status == 200


async def test_a_second_preamble_is_not_a_request(proxy: ProxyProcess, run: RunContext) -> None:
    preamble = write_preamble(run.request_id, CHANNEL_KEY.encode())
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(preamble + preamble)
        assert (await wire.reply()).code == "malformed_request"
        assert await wire.ended()


async def test_the_tenants_credential_stands_in_when_the_run_has_none(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    credentials = SealedCredentials(tenant=sealed("tenant-token-0123456789"))
    run = await gateway.put(a_context(metrics=credentials))

    assert (await proxy.ask("/metrics/v1/totals", run)).status == 200
    assert upstream.last.values("Authorization") == ["Bearer tenant-token-0123456789"]


async def test_a_credential_is_used_only_where_its_seal_says(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    good = sealed("tenant-token-0123456789")
    cases = (
        ("no credential at all", SealedCredentials(), "credential_missing"),
        (
            "another tenant's",
            SealedCredentials(run=sealed("x" * 20, tenant="globex"), tenant=good),
            "credential_refused",
        ),
        ("another upstream's", SealedCredentials(run=sealed("x" * 20, upstream="keyed")), "credential_refused"),
        ("another kind", SealedCredentials(run=sealed("x" * 20, kind="header")), "credential_refused"),
        ("not sealed to this proxy", SealedCredentials(run="bm90IGEgYm94", tenant=good), "credential_refused"),
        ("a line break inside", SealedCredentials(run=sealed("abc\r\nX-Evil: 1")), "credential_refused"),
        ("not ASCII", SealedCredentials(run=sealed("tök-0123456789")), "credential_refused"),
    )
    for name, credentials, code in cases:
        run = await gateway.put(a_context(metrics=credentials))
        reply = await proxy.ask("/metrics/v1/totals", run)
        assert (reply.status, reply.code) == (403, code), name
    assert not upstream.received
