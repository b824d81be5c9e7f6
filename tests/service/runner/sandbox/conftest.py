"""The sandbox of one runner, with a proxy that records what reaches it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from caisson.common.channel import Preamble, read_preamble
from caisson.runner.adapters.host import HostRooms
from caisson.runner.settings import RunnerSettings

CHANNEL_KEY = "the key that runner and proxy share"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run these tests on the event loop that runners use."""
    return {"uvloop": uvloop.new_event_loop}


class RecordingProxy:
    """Reads the preamble of each connection and answers every request with the same greeting."""

    def __init__(self) -> None:
        self.preambles: list[object] = []
        self.requests: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = b""
        while not isinstance(preamble := read_preamble(received, CHANNEL_KEY.encode()), Preamble):
            more = await reader.read(65536)
            if not more:
                break
            received += more
        else:
            received = received[preamble.length :]
        self.preambles.append(preamble)
        while b"\r\n\r\n" not in received and (more := await reader.read(65536)):
            received += more
        self.requests.append(received)
        writer.write(_ANSWER)
        writer.close()


@pytest.fixture(scope="session")
async def proxy() -> AsyncIterator[RecordingProxy]:
    recording = RecordingProxy()
    server = await asyncio.start_server(recording.serve, "127.0.0.1", 0)
    recording.port = server.sockets[0].getsockname()[1]
    async with server:
        yield recording


@pytest.fixture(scope="session")
def runner_settings(tmp_path_factory: pytest.TempPathFactory, proxy: RecordingProxy) -> RunnerSettings:
    return RunnerSettings(
        nats_password="unused",
        channel_key=CHANNEL_KEY,
        workspaces_dir=Path(tmp_path_factory.mktemp("workspaces")),
        proxy_port=proxy.port,
        warm_namespaces=2,
    )


@pytest.fixture(scope="session")
async def rooms(runner_settings: RunnerSettings) -> AsyncIterator[HostRooms]:
    async with HostRooms.started(runner_settings) as started:
        await started.check()
        yield started
