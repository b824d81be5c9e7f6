"""What the upstream reads, byte by byte."""

import json

from caisson.common.contexts import RunContext, SealedCredentials
from tests.service.proxy.conftest import KEY
from tests.support.proxies import Gateway, ProxyProcess, a_context, sealed
from tests.support.raw_upstream import RawUpstream


async def test_every_copy_of_the_tenant_is_replaced_in_query_header_and_path(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    reply = await proxy.ask(
        "/metrics/v1/tenants/globex/totals?tenant_id=globex&b=2&tenantId=acme&TENANTID[]=globex&%74enantId=x",
        run,
        headers=("X_Tenant_Id: globex", "x-tenant-ID: globex", "X-Tenant-Id: acme"),
    )

    assert reply.status == 200
    assert upstream.last.target == "/v1/tenants/acme/totals?tenantId=acme&b=2"
    assert [name for name in upstream.last.names() if "tenant" in name.lower()] == ["X-Tenant-Id"]
    assert upstream.last.values("X-Tenant-Id") == ["acme"]
    events = await gateway.reported(run, 3)
    assert sorted(event.detail["location"] for event in events) == ["header", "path", "query"]
    assert {event.kind for event in events} == {"proxy_rewrite"}
    assert all("globex" not in event.model_dump_json().replace("tenants/globex", "") for event in events)


async def test_normal_use_leaves_every_security_counter_alone(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    async def security() -> float:
        denied = await proxy.counter("caisson_security_proxy_denied_total")
        return denied + await proxy.counter("caisson_security_proxy_rewrite_total")

    before = await security()
    for target in (
        "/metrics/v1/totals",
        "/metrics/v1/totals?tenantId=acme",
        "/metrics/v1/totals?tenantId=",
        "/metrics/v1/tenants/acme/x",
        "/metrics/v1/datasets/ds-1/rows",
    ):
        assert (await proxy.ask(target, run, headers=("X-Tenant-Id: acme",))).status == 200

    assert await security() == before
    assert gateway.events_of(run) == []


async def test_everything_else_in_the_query_keeps_its_bytes(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    query = "b=2&a=1&b=3&flag&sig=%E9%FF&s=1;2&q=a%20b&=&&x=%zz"

    await proxy.ask(f"/metrics/v1/totals?{query}", run)

    assert upstream.last.target == f"/v1/totals?{query}&tenantId=acme"


async def test_headers_that_frame_route_or_authenticate_end_at_the_proxy(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    dropped = (
        "Authorization: Basic Zm9v",
        "authorization: Bearer mine",
        "Cookie: session=1",
        "X_Api_Key: mine",
        "Proxy-Authorization: Basic Zm9v",
        "Proxy-Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "Connection: keep-alive, X-Private",
        "X-Private: 1",
        "TE: gzip",
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-Host: evil",
        "Forwarded: for=1.2.3.4",
        "X-Original-URL: /admin",
        "X-Rewrite-Url: /admin",
        "X-HTTP-Method-Override: DELETE",
        "X-Real-IP: 1.2.3.4",
        "Upgrade: h2c",
        "Accept-Encoding: gzip",
    )
    kept = ("Accept: */*", "User-Agent: curl/8", "x-lower: a", "X-Lower:  b", "X-Empty:")

    await proxy.ask("/keyed/anything", run, headers=(*dropped, *kept))

    assert upstream.last.head.decode().split("\r\n")[1:-1] == [
        f"Host: 127.0.0.1:{upstream.port}",
        "Accept: */*",
        "User-Agent: curl/8",
        "x-lower: a",
        "X-Lower: b",
        "X-Empty: ",
        f"X-Api-Key: {KEY}",
        "Accept-Encoding: identity",
    ]


async def test_without_a_credential_cookies_and_encodings_are_the_clients_own(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    await proxy.ask("/open/x", run, headers=("Cookie: a=1", "Accept-Encoding: br", "Authorization: Bearer mine"))

    assert upstream.last.target == "/base/x"
    assert upstream.last.names() == ["Host", "Cookie", "Accept-Encoding"]


async def test_only_declared_upstreams_methods_paths_and_datasets_pass(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    cases = (
        ("GET", "/unknown/v1/x", 403, "upstream_unknown"),
        ("GET", "/", 403, "upstream_unknown"),
        ("DELETE", "/metrics/v1/x", 403, "method_denied"),
        ("GET", "/metrics/v2/x", 403, "path_denied"),
        ("GET", "/metrics", 403, "path_denied"),
        ("GET", "/metrics/v1/datasets/ds-2/rows", 403, "dataset_denied"),
        ("GET", "/metrics/V1/datasets/ds-1/rows", 403, "path_denied"),
        ("GET", "/metrics/v1/Datasets/ds-2/", 403, "dataset_denied"),
        ("GET", "/metrics/v1/../admin", 400, "target_refused"),
        ("GET", "/metrics/v1/%2e%2e/admin", 400, "target_refused"),
        ("GET", "/metrics//v1/x", 400, "target_refused"),
        ("GET", "http://evil/metrics/v1/x", 400, "target_refused"),
        ("CONNECT", "evil:443", 400, "target_refused"),
        ("OPTIONS", "*", 400, "target_refused"),
    )
    for method, target, status, code in cases:
        reply = await proxy.ask(target, run, method=method)
        assert (reply.status, reply.code) == (status, code), target
        assert len(reply.problem["detail"]) > 20
    assert not upstream.received
    events = await gateway.reported(run, len(cases))
    assert [event.reason for event in events] == [code for *_, code in cases]
    assert (await proxy.ask("/metrics/v1/datasets/ds-1/rows", run)).status == 200


async def test_the_tenant_in_a_json_body_is_replaced_and_the_rest_keeps_its_bytes(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream, run: RunContext
) -> None:
    body = b'{ "a" : [1,{"tenant":{"id":"x"}}], "Tenant":{"ID":"globex","n":1.0e2,"id":"acme"} , "tenant":null}'

    reply = await proxy.ask("/documents/v1/orders", run, method="POST", body=body)

    assert reply.status == 200
    assert upstream.last.body == b'{ "a" : [1,{"tenant":{"id":"x"}}], "tenant":{"id":"acme","n":1.0e2}}'
    assert upstream.last.values("Content-Length") == [str(len(upstream.last.body))]
    events = await gateway.reported(run, 1)
    assert [event.detail["location"] for event in events] == ["json"]


async def test_a_body_that_cannot_be_rewritten_is_refused(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    cases: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
        (b"tenant=globex", (), "body_not_rewritable"),
        (b'["tenant"]', (), "body_not_rewritable"),
        (b'{"tenant":{"id":"x"},}', (), "body_not_rewritable"),
        (b'\xef\xbb\xbf{"tenant":{"id":"x"}}', (), "body_not_rewritable"),
        ('{"tenant":{"id":"x"}}'.encode("utf-16"), (), "body_not_rewritable"),
        (b'{"a":NaN}', (), "body_not_rewritable"),
        (b'{"a":' * 20_000, (), "body_too_large"),
        (b"[" * 40_000, (), "body_not_rewritable"),
        (b'{"a":1}', ("Content-Encoding: gzip",), "body_not_rewritable"),
    )
    for body, headers, code in cases:
        reply = await proxy.ask("/documents/v1/orders", run, method="POST", body=body, headers=headers)
        assert reply.code == code, body[:40]
    assert not upstream.received


async def test_a_chunked_json_body_is_rewritten_too(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    chunks = b'6\r\n{"tena\r\n12\r\nnt":"x","a":[1,2]}\r\n0\r\n\r\n'

    reply = await proxy.ask(
        "/documents/v1/orders", run, method="POST", headers=("Transfer-Encoding: chunked",), chunks=chunks
    )

    assert reply.status == 200
    assert json.loads(upstream.last.body) == {"tenant": {"id": "acme"}, "a": [1, 2]}
    assert upstream.last.values("Transfer-Encoding") == []


async def test_a_tenant_of_any_script_reaches_the_upstream(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    credentials = SealedCredentials(run=sealed("tok-0123456789", tenant="Müller & Söhne"))
    run = await gateway.put(a_context("Müller & Söhne", metrics=credentials))

    await proxy.ask("/metrics/v1/tenants/x/totals", run)

    quoted = "M%C3%BCller%20%26%20S%C3%B6hne"
    assert upstream.last.target == f"/v1/tenants/M%C3%BCller%20&%20S%C3%B6hne/totals?tenantId={quoted}"
    assert "X-Tenant-Id: Müller & Söhne\r\n".encode() in upstream.last.head


async def test_a_tenant_that_cannot_be_a_path_segment_refuses_the_path(
    proxy: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    run = await gateway.put(a_context("..", metrics=SealedCredentials(run=sealed("tok-0123456789", tenant=".."))))

    assert (await proxy.ask("/metrics/v1/tenants/x/totals", run)).code == "tenant_not_expressible"
    assert (await proxy.ask("/metrics/v1/totals", run)).status == 200
