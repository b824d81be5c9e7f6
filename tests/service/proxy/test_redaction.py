"""An upstream that echoes the credential does not reveal it."""

import asyncio
import base64
import gzip
import json
from collections.abc import Callable
from time import monotonic
from urllib.parse import quote

import pytest

from caisson.common.channel import write_preamble
from caisson.common.contexts import RunContext
from tests.service.proxy.conftest import KEY, TOKEN
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, ProxyProcess
from tests.support.raw_client import connected
from tests.support.raw_upstream import Answer, RawUpstream, Received, fixed

DISGUISES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("in clear", lambda value: value),
    ("as base64", lambda value: base64.b64encode(value.encode()).decode()),
    ("as base64 of the whole header", lambda value: base64.b64encode(f"Bearer {value}".encode()).decode()),
    ("as base64 with something behind", lambda value: base64.b64encode(f"x:{value}:yz".encode()).decode()),
    ("as URL-safe base64", lambda value: base64.urlsafe_b64encode(f"ab{value}".encode()).decode()),
    ("percent-encoded", lambda value: quote(value, safe="")),
    ("as JSON", json.dumps),
    ("as hex", lambda value: value.encode().hex()),
)


@pytest.mark.parametrize(("name", "disguise"), DISGUISES, ids=[name for name, _ in DISGUISES])
async def test_an_echoed_credential_is_masked(
    proxy: ProxyProcess,
    upstream: RawUpstream,
    run: RunContext,
    name: str,
    disguise: Callable[[str], str],
) -> None:
    for secret, target in ((TOKEN, "/metrics/v1/echo"), (KEY, "/keyed/echo")):
        echo = f"before {disguise(secret)} after".encode()
        length = b"Content-Length: %d\r\n\r\n%b" % (len(echo), echo)
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in _pieces(echo, 7))
        for raw in (length, b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n", b"\r\n" + echo):
            upstream.answer = _closing(b"HTTP/1.1 200 OK\r\n" + raw)
            reply = await proxy.ask(target, run)
            assert len(reply.body) == len(echo)
            assert reply.body.startswith(b"before ")
            assert reply.body.endswith(b" after")
            assert disguise(secret).encode()[4:-4] not in reply.body


async def test_an_echo_in_headers_and_trailers_is_masked(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    token = TOKEN.encode()
    upstream.answer = fixed(
        b"HTTP/1.1 200 OK\r\nX-Echo: "
        + token
        + b"\r\nLocation: /?t="
        + token
        + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\nX-Trailer: " + token + b"\r\n\r\n"
    )

    reply = await proxy.ask("/metrics/v1/echo", run)

    assert token not in reply.head + reply.trailers
    assert reply.header("X-Echo") == "*" * len(token)


async def test_a_secret_cut_at_every_byte_is_masked(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def drip(received: Received) -> None:
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(TOKEN) + 2))
        for byte in b"<" + TOKEN.encode() + b">":
            await received.send(bytes([byte]))
            await asyncio.sleep(0.001)

    upstream.answer = drip
    reply = await proxy.ask("/metrics/v1/echo", run)
    assert reply.body == b"<" + b"*" * len(TOKEN) + b">"


async def test_a_beginning_that_never_becomes_the_secret_arrives_with_the_end(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    body = b"see " + TOKEN.encode()[:-1]
    upstream.answer = fixed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert (await proxy.ask("/metrics/v1/echo", run)).body == body


async def test_redaction_does_not_hold_events_back(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    more = asyncio.Event()

    async def events(received: Received) -> None:
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(3):
            await received.send(b"d:1\n\n")
            await more.wait()
            more.clear()

    upstream.answer = events
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await wire.send(b"GET /metrics/v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
        await wire.reader.readuntil(b"\r\n\r\n")
        for _ in range(3):
            began = monotonic()
            assert await wire.reader.readexactly(10) == b"5\r\nd:1\n\n\r\n"
            assert monotonic() - began < 0.2
            more.set()


async def test_a_compressed_answer_that_nobody_asked_for_is_refused_unless_the_upstream_is_trusted(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    body = gzip.compress(TOKEN.encode())
    upstream.answer = fixed(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    reply = await proxy.ask("/metrics/v1/echo", run, headers=("Accept-Encoding: gzip",))

    assert (reply.status, reply.code) == (502, "encoded_answer")
    assert upstream.last.values("Accept-Encoding") == ["identity"]
    assert (await proxy.ask("/trusted/x", run)).raw_body == body


async def test_frames_of_a_websocket_are_searched_and_never_held_back(
    proxy: ProxyProcess, upstream: RawUpstream, run: RunContext
) -> None:
    async def socket(received: Received) -> None:
        assert received.values("Sec-WebSocket-Extensions") == []
        text = TOKEN.encode()
        await received.send(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await received.send(b"\x81\x7e" + len(text).to_bytes(2, "big") + text[:9])
        await asyncio.sleep(0.02)
        await received.send(text[9:] + b"\x81\x03" + text[:3])
        await received.reader.read(1)

    upstream.answer = socket
    headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate"
    async with connected(proxy.addresses["proxy"]) as wire:
        await wire.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await wire.send(f"GET /metrics/v1/socket HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n".encode())
        await wire.reader.readuntil(b"\r\n\r\n")
        size = len(TOKEN)
        assert await wire.reader.readexactly(4 + size) == b"\x81\x7e" + size.to_bytes(2, "big") + b"*" * size
        assert await asyncio.wait_for(wire.reader.readexactly(5), 1) == b"\x81\x03" + TOKEN.encode()[:3]


async def test_an_echo_is_counted(proxy: ProxyProcess, upstream: RawUpstream, run: RunContext) -> None:
    name = "caisson_proxy_credential_echoed_total"
    before = await proxy.counter(name, upstream="metrics")
    upstream.answer = fixed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(TOKEN), TOKEN.encode()))
    await proxy.ask("/metrics/v1/echo", run)

    async def is_counted() -> bool:
        return await proxy.counter(name, upstream="metrics") > before

    await eventually(is_counted)


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _closing(raw: bytes) -> Answer:
    async def answer(received: Received) -> None:
        await received.send(raw)
        received.writer.close()

    return answer
