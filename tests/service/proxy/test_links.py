"""Connections to an upstream: kept for the same caller, never for two tenants, never after a body left unread."""

from caisson.common.contexts import RunContext, SealedCredentials
from tests.support.proxies import Gateway, ProxyProcess, a_context, sealed
from tests.support.raw_upstream import OK, RawUpstream, Received


async def a_run_of(gateway: Gateway, tenant: str, token: str) -> RunContext:
    credentials = SealedCredentials(tenant=sealed(token, tenant=tenant))
    return await gateway.put(a_context(tenant, metrics=credentials))


async def test_a_connection_is_used_again_for_the_same_tenant_and_credential_only(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    first = await a_run_of(gateway, "links-a", "token-of-a")
    again = await a_run_of(gateway, "links-a", "token-of-a")
    own = await a_run_of(gateway, "links-a", "another-token")
    other = await a_run_of(gateway, "links-b", "token-of-b")

    for run in (first, again, own, other):
        assert (await proxy.ask("/metrics/v1/totals", run)).status == 200

    used = [received.connection for received in upstream.received]
    assert used[0] == used[1]
    assert len({used[0], used[2], used[3]}) == 3


async def test_a_body_that_a_server_may_leave_unread_ends_its_connection(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    async def careless(received: Received) -> None:
        await received.send(OK)

    upstream.answer = careless
    run = await a_run_of(gateway, "links-c", "token-of-c")
    smuggled = b"GET /v1/secret HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: globex\r\n\r\n"

    reply = await proxy.ask("/metrics/v1/totals", run, body=smuggled)
    await proxy.ask("/metrics/v1/totals", run)

    assert reply.body == b"ok"
    first, *_, last = upstream.received
    assert first.values("Connection") == ["close"]
    assert first.connection != last.connection


async def test_what_comes_behind_an_answer_reaches_nobody(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    async def twice(received: Received) -> None:
        await received.send(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nPOISONED")

    upstream.answer = twice
    run = await a_run_of(gateway, "links-d", "token-of-d")

    for _ in range(3):
        assert (await proxy.ask("/metrics/v1/totals", run)).body == b"ok"


async def test_pieces_of_an_answer_are_not_for_the_asking_where_a_credential_is_at_stake(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    run = await a_run_of(gateway, "links-e", "token-of-e")

    await proxy.ask("/metrics/v1/totals", run, headers=("Range: bytes=0-11", 'If-Range: "x"'))

    assert not {"Range", "If-Range"} & set(upstream.last.names())
