"""Bodies in both directions, as they come."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, ProxyProcess
from tests.support.raw_client import Wire, connected
from tests.support.raw_upstream import OK, RawUpstream, Received, fixed

MIB = 1 << 20


@asynccontextmanager
async def on_channel(proxy: ProxyProcess, run: RunContext) -> AsyncIterator[Wire]:
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        yield wire


def request(method: str, target: str, *headers: str) -> bytes:
    return "\r\n".join((f"{method} {target} HTTP/1.1", "Host: a", *headers, "", "")).encode()


async def test_each_server_sent_event_arrives_when_it_is_sent(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    sent: list[float] = []

    async def events(received: Received) -> None:
        await received.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for number in range(20):
            await asyncio.sleep(0.02)
            sent.append(monotonic())
            await received.send(b"7\r\ne: %02d\n\n\r\n" % number)
        await received.send(b"0\r\n\r\n")

    upstream.answer = events
    async with on_channel(proxy, run) as wire:
        await wire.send(request("GET", "/metrics/v1/events"))
        await wire.reader.readuntil(b"\r\n\r\n")
        for number in range(20):
            assert await wire.reader.readuntil(b"\n\n\r\n") == b"7\r\ne: %02d\n\n\r\n" % number
            assert monotonic() - sent[number] < 0.2
        assert await wire.reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"


async def test_a_client_may_ask_before_it_sends_its_body(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def answer(received: Received) -> None:
        assert received.values("Expect") == ["100-continue"]
        await received.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await received.read_body()
        await received.send(OK)

    upstream.answer = answer
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/open/x", "Expect: 100-continue", "Content-Length: 5"))
        assert (await wire.reply()).status == 100
        await wire.send(b"hello")
        assert (await wire.reply()).status == 200
    assert upstream.last.body == b"hello"


async def test_a_body_that_must_be_rewritten_is_asked_for_by_the_proxy(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/documents/x", "Expect: 100-continue", "Content-Length: 2"))
        assert (await wire.reply()).status == 100
        await wire.send(b"{}")
        assert (await wire.reply()).status == 200
    assert upstream.last.values("Expect") == []
    assert upstream.last.body == b'{"tenant":{"id":"acme"}}'


async def test_a_refused_body_is_never_asked_for(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/metrics/v2/x", "Expect: 100-continue", "Content-Length: 5"))
        assert (await wire.reply()).status == 403
        assert await wire.ended()


async def test_a_body_that_is_said_to_be_empty_is_said_so_upstream(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    await proxy.ask("/open/x", run, method="POST", headers=("Content-Length: 0",))
    assert upstream.last.values("Content-Length") == ["0"]
    await proxy.ask("/open/x", run, method="POST")
    assert upstream.last.values("Content-Length") == []


async def test_chunks_pass_in_both_directions_with_their_trailers(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def answer(received: Received) -> None:
        body = await received.reader.readuntil(b"\r\n\r\n")
        received.body = body
        await received.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        await received.send(b"3;ext=1\r\nabc\r\n0\r\nX-Sum: 1\r\nProxy-Note: 1\r\n\r\n")

    upstream.answer = answer
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/open/x", "Transfer-Encoding: chunked", "TE: trailers"))
        await wire.send(b"5\r\nhello\r\n0\r\nX-Check: 2\r\nAuthorization: mine\r\nX_Forwarded_For: 1\r\n\r\n")
        reply = await wire.reply()
    assert upstream.last.body == b"5\r\nhello\r\n0\r\nX-Check: 2\r\n\r\n"
    assert upstream.last.values("TE") == ["trailers"]
    assert (reply.body, reply.trailers) == (b"abc", b"X-Sum: 1\r\n")


async def test_answers_without_a_body_end_with_their_head(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    cases = (
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", 200),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200),
        ("HEAD", b"HTTP/1.1 404 No\r\n\r\n", 404),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: x\r\n\r\n", 304),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
    )
    async with on_channel(proxy, run) as wire:
        for method, raw, status in cases:
            upstream.answer = fixed(raw)
            await wire.send(request(method, "/open/x"))
            reply = await asyncio.wait_for(wire.reply(to_head=method == "HEAD"), 2)
            assert (reply.status, reply.body) == (status, b""), raw
        upstream.answer = fixed(OK)
        await wire.send(request("GET", "/open/x"))
        assert (await wire.reply()).body == b"ok"


async def test_an_answer_that_ends_by_closing_reaches_the_client_whole(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def answer(received: Received) -> None:
        await received.send(b"HTTP/1.0 200 OK\r\nX-Old: 1\r\n\r\nabc")
        await received.send(b"def")
        received.writer.close()

    upstream.answer = answer
    async with on_channel(proxy, run) as wire:
        for _ in range(2):
            await wire.send(request("GET", "/open/x"))
            reply = await wire.reply()
            assert (reply.head[:15], reply.body) == (b"HTTP/1.1 200 OK", b"abcdef")


async def test_an_http_1_0_client_gets_no_chunks(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    upstream.answer = fixed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    async with on_channel(proxy, run) as wire:
        await wire.send(b"GET /open/x HTTP/1.0\r\n\r\n")
        reply = await wire.reply()
    assert b"chunked" not in reply.head
    assert (reply.body, reply.header("Connection")) == (b"abc", "close")


async def test_bodies_are_neither_decoded_nor_encoded(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    body = b"\x1f\x8b\x08\x00 not really gzip"
    for encoding in ("gzip", "br", "deflate", "zstd"):
        upstream.answer = fixed(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b"
            % (encoding.encode(), len(body), body)
        )
        reply = await proxy.ask("/open/x", run, headers=(f"Accept-Encoding: {encoding}",))
        assert (reply.raw_body, reply.header("Content-Encoding")) == (body, encoding)


async def test_an_early_answer_arrives_although_the_upload_is_not_over(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def too_much(received: Received) -> None:
        await received.send(b"HTTP/1.1 413 Too Much\r\nContent-Length: 4\r\n\r\nnope")

    upstream.answer = too_much
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/open/x", "Content-Length: 1000000") + b"x" * 1000)
        reply = await wire.reply()
        assert (reply.status, reply.body, reply.header("Connection")) == (413, b"nope", "close")
        assert await wire.ended()


async def test_requests_of_one_connection_use_one_upstream_connection(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async with on_channel(proxy, run) as wire:
        for _ in range(3):
            await wire.send(request("GET", "/open/x"))
            assert (await wire.reply()).status == 200
    assert len({received.connection for received in upstream.received}) == 1


async def test_pipelined_requests_are_decided_one_by_one_and_answered_in_order(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    targets = ["/open/1", "/metrics/v2/x", "/open/2", "/unknown/x", "/open/3"]

    async def slow_echo(received: Received) -> None:
        await asyncio.sleep(0.02)
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + received.target[-1].encode())

    upstream.answer = slow_echo
    async with on_channel(proxy, run) as wire:
        await wire.send(b"".join(request("GET", target) for target in targets))
        replies = [await wire.reply() for _ in targets]
    assert [reply.status for reply in replies] == [200, 403, 200, 403, 200]
    assert [reply.body for reply in replies if reply.status == 200] == [b"1", b"2", b"3"]


async def test_a_request_behind_a_body_in_the_same_packet_is_a_request_of_its_own(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def answer(received: Received) -> None:
        if received.line.startswith("POST"):
            received.body = await received.reader.readexactly(len(b"5\r\nhello\r\n0\r\n\r\n"))
        await received.send(OK)

    upstream.answer = answer
    async with on_channel(proxy, run) as wire:
        await wire.send(
            request("POST", "/open/1", "Transfer-Encoding: chunked")
            + b"5\r\nhello\r\n0\r\n\r\n"
            + request("GET", "/open/2")
            + request("GET", "/open/2")
        )
        assert [(await wire.reply()).status for _ in range(3)] == [200, 200, 200]
    assert [received.line[:5] for received in upstream.received] == ["POST ", "GET /", "GET /"]


async def test_a_gibibyte_would_not_fit_into_memory_and_need_not(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    size = 96 * MIB
    block = bytes(range(256)) * 4096

    async def mirror(received: Received) -> None:
        digest = hashlib.sha256()
        for _ in range(size // len(block)):
            digest.update(await received.reader.readexactly(len(block)))
        await received.send(b"HTTP/1.1 200 OK\r\nX-Digest: %b\r\n" % digest.hexdigest().encode())
        await received.send(b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(block)):
            await received.send(block)

    upstream.answer = mirror
    proxy.reset_peak()
    before = proxy.peak_kib()
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/open/x", f"Content-Length: {size}"))
        sent = hashlib.sha256()
        for _ in range(size // len(block)):
            sent.update(block)
            await wire.send(block)
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert b"X-Digest: " + sent.hexdigest().encode() in head
        received = hashlib.sha256()
        for _ in range(size // len(block)):
            received.update(await wire.reader.readexactly(len(block)))
    assert received.digest() == sent.digest()
    assert proxy.peak_kib() - before < 16 * 1024


async def test_a_client_that_does_not_read_stops_the_upstream(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    sent = 0

    async def flood(received: Received) -> None:
        nonlocal sent
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (256 * MIB))
        for _ in range(256):
            await received.send(bytes(MIB))
            sent += 1

    upstream.answer = flood
    proxy.reset_peak()
    before = proxy.peak_kib()
    async with on_channel(proxy, run) as wire:
        await wire.send(request("GET", "/open/x"))
        await eventually(lambda: sent > 0)
        stalled = -1

        def has_stalled() -> bool:
            nonlocal stalled
            previous, stalled = stalled, sent
            return previous == sent

        await eventually(has_stalled)
        assert sent < 64
    assert proxy.peak_kib() - before < 16 * 1024


async def test_a_websocket_is_carried_with_its_first_frame_in_both_directions(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def socket(received: Received) -> None:
        assert received.values("Upgrade") == ["websocket"]
        assert received.values("Sec-WebSocket-Protocol") == ["a, b"]
        await received.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: b\r\n\r\n\x81\x02hi"
        )
        while data := await received.reader.read(100):
            await received.send(data[::-1])

    upstream.answer = socket
    headers = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: a, b", "Origin: http://a")
    async with on_channel(proxy, run) as wire:
        await wire.send(request("GET", "/metrics/v1/socket", *headers) + b"first")
        reply = await wire.reply()
        assert (reply.status, reply.header("Sec-WebSocket-Protocol")) == (101, "b")
        assert await wire.reader.readexactly(4) == b"\x81\x02hi"
        assert await wire.reader.readexactly(5) == b"tsrif"
        await wire.send(b"again")
        assert await wire.reader.readexactly(5) == b"niaga"


async def test_the_last_frame_of_a_client_that_hangs_up_arrives(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    heard = asyncio.get_running_loop().create_future()

    async def socket(received: Received) -> None:
        await received.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        heard.set_result(await received.reader.read(-1))

    upstream.answer = socket
    async with on_channel(proxy, run) as wire:
        await wire.send(request("GET", "/open/x", "Connection: Upgrade", "Upgrade: websocket"))
        assert (await wire.reply()).status == 101
        await wire.send(b"goodbye")
    assert await asyncio.wait_for(heard, 2) == b"goodbye"


async def test_a_websocket_is_refused_like_any_request_and_dials_nobody(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    headers = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    assert (await proxy.ask("/metrics/v2/socket", run, headers=headers)).status == 403
    assert (await proxy.ask("/metrics/v1/socket", None, headers=headers)).code == "context_unknown"
    assert not upstream.received


async def test_a_switch_that_the_upstream_declines_leaves_an_ordinary_connection(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async with on_channel(proxy, run) as wire:
        await wire.send(
            request("GET", "/open/x", "Connection: Upgrade", "Upgrade: websocket") + request("GET", "/open/y")
        )
        assert [(await wire.reply()).status for _ in range(2)] == [200, 200]
        await wire.send(request("GET", "/open/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))
        assert (await wire.reply()).status == 200
    assert "Upgrade" not in upstream.last.names()


async def test_an_upload_ends_at_the_limit(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    async def patient(received: Received) -> None:
        await received.reader.read(-1)

    upstream.answer = patient
    reply = await proxy.ask("/impatient/x", run, method="POST", body=b"x" * 20_000)
    assert (reply.status, reply.code) == (413, "body_too_large")
    assert not upstream.received
    async with on_channel(proxy, run) as wire:
        await wire.send(request("POST", "/impatient/x", "Transfer-Encoding: chunked"))
        await wire.send(b"2000\r\n" + b"x" * 0x2000 + b"\r\n2000\r\n" + b"x" * 0x2000)
        assert (await wire.reply()).code == "body_too_large"
        assert await wire.ended()


async def test_redirects_are_passed_back_and_never_followed(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    for location in ("http://elsewhere/", "//elsewhere", f"http://u:p@127.0.0.1:{upstream.port}/x", "/relative"):
        upstream.answer = fixed(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
        reply = await proxy.ask("/metrics/v1/x", run)
        assert (reply.status, reply.header("Location")) == (302, location)
    asked = [received for received in upstream.received if received.head.startswith(b"GET ")]
    assert len(asked) == 4, "what an earlier test sent may still arrive"
