"""What is malformed, missing, late or gone: an answer that says so, and never a request sent twice."""

import asyncio
import ssl
from pathlib import Path

import pytest

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext
from caisson.stack.nats import EmbeddedNats
from tests.support.certificates import issue
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, Gateway, ProxyProcess
from tests.support.raw_client import connected
from tests.support.raw_upstream import OK, RawUpstream, Received, fixed

POST = b"POST /open/x HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /open/x HTTP/1.1\r\n"

MALFORMED = (
    (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "length beside chunks"),
    (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "chunks beside length"),
    (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "two lengths, even equal ones"),
    (POST + b"Content-Length: 5, 6\r\n\r\nhello", "a list of lengths"),
    (POST + b"Content-Length: -1\r\n\r\n", "a negative length"),
    (POST + b"Content-Length: +5\r\n\r\nhello", "a signed length"),
    (POST + b"Content-Length: 0x5\r\n\r\nhello", "a hexadecimal length"),
    (POST + b"Content-Length: 99999999999999999999\r\n\r\n", "a length beyond 64 bits"),
    (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "a coding nobody here decodes"),
    (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "chunked twice"),
    (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "nearly chunked"),
    (POST + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", "the coding that is none"),
    (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "a space before the colon"),
    (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "a chunk size that is no number"),
    (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", "a chunk longer than it says"),
    (POST + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", "bare line feeds in chunks"),
    (POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", "a chunk size beyond 64 bits"),
    (b"POST /open/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunks in HTTP/1.0"),
    (GET + b"\r\n", "no Host"),
    (GET + b"Host: a\r\nHost: a\r\n\r\n", "two Hosts"),
    (GET + b"Host: a\r\nX: 1\r\n folded\r\n\r\n", "a folded header"),
    (GET + b"Host: a\r\nX: 1\x00\r\n\r\n", "NUL in a header"),
    (GET + b"Host: a\r\nX: 1\rY: 2\r\n\r\n", "a bare carriage return"),
    (b"GET /open/x HTTP/1.1\nHost: a\n\n", "bare line feeds"),
    (b"GET /open/x HTTP/2.0\r\nHost: a\r\n\r\n", "another version"),
    (b"GET /open/x\r\n\r\n", "no version"),
    (b"GET /open/\x80 HTTP/1.1\r\nHost: a\r\n\r\n", "a raw byte in the target"),
    (b"BREW /open/x HTTP/1.1\r\nHost: a\r\n\r\n", "an unknown method"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS where none is spoken"),
)


@pytest.mark.parametrize(("raw", "reason"), MALFORMED, ids=[reason for _, reason in MALFORMED])
async def test_malformed_framing_is_answered_400_and_closed(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext, raw: bytes, reason: str
) -> None:
    upstream.answer = _read_for_ever
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()) + raw + GET + b"Host: a\r\n\r\n")
        reply = await wire.reply()
        assert (reply.status, reply.code) in {(400, "malformed_request"), (400, "host_ambiguous")}, reason
        assert await wire.ended()
    assert len(upstream.received) <= 1


async def test_a_head_beyond_the_limit_is_refused(proxy: ProxyProcess, run: RunContext) -> None:
    for head in (b"GET /open/" + b"a" * 70_000, GET + b"Host: a\r\nX: " + b"b" * 70_000):
        async with connected(proxy.addresses["proxy"]) as wire:
            await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()) + head)
            assert (await wire.reply()).code == "head_too_large"
            assert await wire.ended()


async def test_an_upstream_that_refuses_connections_is_told_from_one_that_fails(
    proxy: ProxyProcess, gateway: Gateway, run: RunContext
) -> None:
    denied = await proxy.counter("caisson_security_proxy_denied_total")

    reply = await proxy.ask("/nowhere/x", run)

    assert (reply.status, reply.code) == (502, "upstream_unreachable")
    assert "Nothing was sent" in reply.problem["detail"]
    assert await proxy.counter("caisson_security_proxy_denied_total") == denied
    assert gateway.events_of(run) == []


async def test_silence_is_ended_at_the_limit(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    upstream.answer = _read_for_ever
    assert (await proxy.ask("/impatient/x", run)).code == "upstream_timeout"

    async def half(received: Received) -> None:
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await _read_for_ever(received)

    upstream.answer = half
    with pytest.raises(asyncio.IncompleteReadError):
        await proxy.ask("/impatient/x", run)

    upstream.answer = _read_for_ever
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await wire.send(b"POST /impatient/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        assert (await wire.reply()).code == "request_timeout"


async def test_an_answer_that_breaks_off_is_not_completed(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    for head in (b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"):

        async def half(received: Received, head: bytes = head) -> None:
            await received.send(b"HTTP/1.1 200 OK\r\n" + head)
            received.writer.close()

        upstream.answer = half
        with pytest.raises(asyncio.IncompleteReadError):
            await proxy.ask("/open/x", run)


async def test_what_is_no_answer_is_refused(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    cases = (
        b"garbage\r\n\r\n",
        b"HTTP/1.1 2xx OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBad Name: 1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000,
    )
    for raw in cases:
        upstream.answer = fixed(raw)
        reply = await proxy.ask("/open/x", run)
        assert (reply.status, reply.code) == (502, "upstream_malformed"), raw[:60]


async def test_a_connection_on_which_more_came_than_the_answer_is_not_used_again(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    for stray in (b"X", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"HTTP/1.1 200 OK\r\nX: "):
        upstream.answer = fixed(OK + stray)
        assert (await proxy.ask("/open/x", run)).body == b"ok"
        upstream.answer = fixed(OK)
        assert (await proxy.ask("/open/x", run)).body == b"ok"
    assert len({received.connection for received in upstream.received}) >= 4


async def test_a_request_on_a_connection_that_had_died_unseen_is_sent_again_only_if_that_is_harmless(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def die_on_the_second(received: Received) -> None:
        await received.read_body()
        if sum(other.connection == received.connection for other in upstream.received) > 1:
            received.writer.close()
        else:
            await received.send(OK)

    for method, status, body in (("GET", 200, b""), ("POST", 502, b"x"), ("DELETE", 502, b"")):
        upstream.reset()
        assert (await proxy.ask("/open/x", run)).status == 200
        upstream.answer = die_on_the_second
        upstream.received.clear()
        await proxy.ask("/open/warm", run)
        seen = len(upstream.received)
        reply = await proxy.ask("/open/x", run, method=method, body=body)
        assert reply.status == status, method
        sent = [received for received in upstream.received[seen:] if received.line.startswith(method)]
        assert len(sent) == (2 if status == 200 else 1)


async def test_a_client_that_goes_away_takes_its_request_along(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    ended = asyncio.Event()

    async def wait(received: Received) -> None:
        await received.reader.read(-1)
        ended.set()

    upstream.answer = wait
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()) + GET + b"Host: a\r\n\r\n")
        await eventually(lambda: upstream.received)
    await asyncio.wait_for(ended.wait(), 2)


async def test_an_upstreams_certificate_is_verified(
    proxy_nats: EmbeddedNats, gateway: Gateway, run: RunContext, tmp_path: Path
) -> None:
    authority, certificate, key = issue(tmp_path, "localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    upstream = RawUpstream(context)
    await upstream.start()
    entry = "\n  {name}:\n    base_url: https://{host}:{port}\n    allow: [{{methods: [GET], path: /**}}]{ca}"
    upstreams = "upstreams:" + "".join(
        entry.format(name=name, host=host, port=upstream.port, ca=f"\n    ca_file: {authority}" if trusts else "")
        for name, host, trusts in (
            ("good", "localhost", True),
            ("untrusted", "localhost", False),
            ("misnamed", "127.0.0.1", True),
        )
    )
    proxy = ProxyProcess(proxy_nats, tmp_path, upstreams, {})
    await proxy.start()
    try:
        assert (await proxy.ask("/good/x", run)).body == b"ok"
        for name in ("untrusted", "misnamed"):
            reply = await proxy.ask(f"/{name}/x", run)
            assert (reply.status, reply.code) == (502, "upstream_unreachable")
            assert "certificate" in reply.problem["detail"]
    finally:
        assert await proxy.stop() == 0
        await upstream.stop()


async def _read_for_ever(received: Received) -> None:
    while await received.reader.read(65536):
        pass
    raise ConnectionError
