"""The process: what it refuses to start with, how it reloads and how it ends."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from caisson.common.channel import write_preamble
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually
from tests.support.proxies import CHANNEL_KEY, Gateway, ProxyProcess, a_context
from tests.support.raw_client import connected
from tests.support.raw_upstream import RawUpstream, Received

ENTRY = """
upstreams:
  open:
    base_url: ${{UPSTREAM_URL:-http://127.0.0.1:1}}
    allow:
      - {{methods: [GET], path: {path}}}
"""


@pytest.fixture
async def own(
    proxy_nats: EmbeddedNats, gateway: Gateway, upstream: RawUpstream, tmp_path: Path
) -> AsyncIterator[ProxyProcess]:
    url = f"http://127.0.0.1:{upstream.port}"
    proxy = ProxyProcess(proxy_nats, tmp_path, ENTRY.format(path="/a/**"), {"UPSTREAM_URL": url})
    await proxy.start()
    yield proxy
    await proxy.stop()


async def test_sighup_loads_the_file_again_and_a_bad_file_changes_nothing(
    own: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    run = await gateway.put(a_context())

    async def reload(text: str, result: str) -> None:
        before = await own.counter("caisson_proxy_upstreams_reloads_total", result=result)
        own.upstreams_file.write_text(text)
        assert own.process is not None
        own.process.send_signal(signal.SIGHUP)

        async def has_reloaded() -> bool:
            return await own.counter("caisson_proxy_upstreams_reloads_total", result=result) == before + 1

        await eventually(has_reloaded)

    assert [(await own.ask(target, run)).status for target in ("/open/a/x", "/open/b/x")] == [200, 403]
    await reload("upstreams:\n  open:\n    base_urk: x\n", "refused")
    assert [(await own.ask(target, run)).status for target in ("/open/a/x", "/open/b/x")] == [200, 403]
    assert f"{own.upstreams_file}:3: upstreams.open.base_urk" in own.log.read_text()
    await reload(ENTRY.format(path="/b/**"), "loaded")
    assert [(await own.ask(target, run)).status for target in ("/open/a/x", "/open/b/x")] == [403, 200]


async def test_a_draining_proxy_finishes_what_it_carries_and_takes_nothing_new(
    own: ProxyProcess, gateway: Gateway, upstream: RawUpstream
) -> None:
    run = await gateway.put(a_context())
    go_on = asyncio.Event()

    async def slow(received: Received) -> None:
        await received.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha")
        await go_on.wait()
        await received.send(b"lf")

    upstream.answer = slow
    async with connected(own.addresses["proxy"]) as busy, connected(own.addresses["proxy"]) as idle:
        await idle.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await busy.send(write_preamble(run.request_id, CHANNEL_KEY.encode()))
        await busy.send(b"GET /open/a/x HTTP/1.1\r\nHost: a\r\n\r\n")
        await busy.reader.readuntil(b"ha")
        ending = asyncio.create_task(own.stop())
        assert await asyncio.wait_for(idle.ended(), 2)
        with pytest.raises(ConnectionRefusedError):
            await own.ask("/open/a/x", run)
        go_on.set()
        assert await busy.reader.readexactly(2) == b"lf"
        assert await busy.ended()
    assert await ending == 0


async def test_it_does_not_start_with_what_it_cannot_use(proxy_nats: EmbeddedNats, tmp_path: Path) -> None:
    cases: tuple[tuple[str, dict[str, str], str], ...] = (
        ("upstream: {}", {}, "upstreams.yaml:1"),
        (
            "upstreams:\n  a:\n    base_url: ftp://x\n    allow: [{methods: [GET], path: /x}]",
            {},
            "yaml:2: upstreams.a",
        ),
        (ENTRY.format(path="/a/**"), {"PROXY_PRIVATE_KEY": "c2hvcnQ="}, "PROXY_PRIVATE_KEY"),
        (ENTRY.format(path="/a/**"), {"PROXY_CHANNEL_KEY": "change-me"}, "PROXY_CHANNEL_KEY"),
    )
    for upstreams, environment, told in cases:
        proxy = ProxyProcess(proxy_nats, tmp_path, upstreams, environment)
        try:
            with pytest.raises(AssertionError, match="ended with 1"):
                await proxy.start()
        finally:
            await proxy.stop()
        assert told in proxy.log.read_text(), told
        proxy.log.unlink()
