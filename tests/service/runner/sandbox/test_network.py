"""A box reaches the bridge and nothing else; what it tries is refused at once and counted by destination."""

import asyncio
import socket

import pytest

from caisson.common.channel import Preamble
from caisson.common.outcome import Exited
from caisson.runner.adapters.host import HostRooms
from caisson.runner.domain.boxes import Refusal
from caisson.runner.settings import RunnerSettings
from tests.service.runner.sandbox.conftest import RecordingProxy
from tests.support.boxes import execute, printed, room
from tests.support.eventually import eventually

ATTEMPTS = [
    ("curl -sS http://1.1.1.1/", "1.1.1.1:80/tcp", "a public address"),
    ("curl -sS http://169.254.169.254/latest/meta-data/", "169.254.169.254:80/tcp", "the metadata address"),
    ("curl -sS http://[2606:4700::1111]/", "[2606:4700::1111]:80/tcp", "IPv6"),
    ("curl -sS http://127.0.0.1:4222/", "127.0.0.1:4222/tcp", "another port of the loopback"),
    ("curl -sS http://[::1]:9191/", "[::1]:9191/tcp", "the bridge's port on the IPv6 loopback"),
    ("curl -sS http://127.0.0.2:9191/", "127.0.0.2:9191/tcp", "the bridge's port on another loopback address"),
    ("curl -sS http://10.0.0.1/", "10.0.0.1:80/tcp", "a private neighbour"),
    ("curl -sS http://example.com/", "127.0.0.1:53/udp", "a name: there is no resolver"),
    ("echo x >/dev/udp/8.8.8.8/53", "8.8.8.8:53/udp", "UDP"),
]


@pytest.mark.parametrize(("script", "destination", "why"), ATTEMPTS, ids=[why for *_, why in ATTEMPTS])
async def test_everything_else_is_refused_at_once_and_counted(
    rooms: HostRooms, script: str, destination: str, why: str
) -> None:
    async with room(rooms) as here:
        result = await execute(here, script)
        assert isinstance(result.outcome, Exited)
        assert result.outcome.exit_code != 0
        assert result.duration_ms < 1000
        assert destination in {refusal.destination for refusal in result.refused}
        assert (await execute(here, "true")).refused == ()


async def test_only_what_is_new_since_the_last_command_is_reported(rooms: HostRooms) -> None:
    attempt = ": </dev/tcp/192.0.2.7/443; true"
    async with room(rooms) as here:
        expected = (Refusal(destination="192.0.2.7:443/tcp", packets=1),)
        assert (await execute(here, attempt)).refused == expected
        assert (await execute(here, attempt)).refused == expected


async def test_more_destinations_than_are_kept_are_still_counted(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        result = await execute(here, "for i in {1..300}; do : </dev/tcp/192.0.2.1/$i; done 2>/dev/null; true")
    assert sum(refusal.packets for refusal in result.refused) == 300


async def test_a_room_does_not_see_the_refusals_or_listeners_of_another(rooms: HostRooms) -> None:
    async with room(rooms) as one, room(rooms, uid=10_002, run_id="run_2") as other:
        await execute(one, ": </dev/tcp/192.0.2.1/80")
        assert (await execute(other, "true")).refused == ()


async def test_what_the_host_listens_on_is_out_of_reach(rooms: HostRooms) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with room(rooms) as here:
            result = await execute(here, f": </dev/tcp/127.0.0.1/{port}")
        assert result.refused == (Refusal(destination=f"127.0.0.1:{port}/tcp", packets=1),)


async def test_the_bridge_carries_the_runs_own_identity(rooms: HostRooms, proxy: RecordingProxy) -> None:
    proxy.preambles.clear()
    proxy.requests.clear()
    async with room(rooms, request_id="req_of_this_run") as here:
        assert await printed(here, "curl -sS $API_HOST/v1/x", REQUEST_ID="req_told_to_the_command") == "hello\n"
    assert [type(item) for item in proxy.preambles] == [Preamble]
    assert [item.request_id for item in proxy.preambles if isinstance(item, Preamble)] == ["req_of_this_run"]
    assert b"GET /v1/x HTTP/1.1" in proxy.requests[0]
    assert b"X-Request-Id: req_told_to_the_command\r\n" in proxy.requests[0]


async def test_the_first_connection_of_a_new_room_is_never_lost(rooms: HostRooms) -> None:
    for number in range(20):
        async with room(rooms, run_id=f"run_{number}") as here:
            request = "exec 3<>/dev/tcp/127.0.0.1/9191; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
            assert (await printed(here, request)).endswith("hello\n")


CURL_CALLS = [
    ("curl -sS -m 5 $API_HOST", "a time limit of its own"),
    ("curl -q -sS $API_HOST", "without a configuration file"),
    ("curl -sSd a=b -H 'X-Other: 1' $API_HOST", "other options"),
    ("/usr/bin/curl -sS $API_HOST", "the wrapped program itself"),
]


@pytest.mark.parametrize(("script", "why"), CURL_CALLS, ids=[why for _, why in CURL_CALLS])
async def test_the_curl_wrapper_does_no_harm(rooms: HostRooms, script: str, why: str) -> None:
    async with room(rooms) as here:
        assert await printed(here, script) == "hello\n"


async def test_a_proxy_that_is_down_is_explained(runner_settings: RunnerSettings) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings = runner_settings.model_copy(update={"proxy_port": unused.getsockname()[1]})
        async with HostRooms.started(settings) as rooms, room(rooms) as here:
            answer = await printed(here, "curl -sS -i $API_HOST/v1/x")
    assert answer.startswith("HTTP/1.1 502 ")
    assert '"code":"unavailable"' in answer


async def test_the_bridge_moves_large_bodies_both_ways_and_ends_with_the_room(
    runner_settings: RunnerSettings,
) -> None:
    """The peer reads all that comes until the half-close, then sends the same number of bytes back."""
    size = 20 << 20
    connections: set[asyncio.StreamWriter] = set()

    async def send_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        await reader.readexactly(16)
        received = 0
        while chunk := await reader.read(1 << 16):
            received += len(chunk)
        for _ in range(received // (1 << 16)):
            writer.write(b"y" * (1 << 16))
            await writer.drain()
        writer.close()
        connections.discard(writer)

    server = await asyncio.start_server(send_back, "127.0.0.1", 0)
    settings = runner_settings.model_copy(update={"proxy_port": server.sockets[0].getsockname()[1]})
    program = (
        "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0);"
        'connect($s, pack_sockaddr_in(9191, inet_aton("127.0.0.1"))) or die; my $sent = 0;'
        f"while ($sent < {size}) {{ $sent += syswrite($s, 'x' x 65536) }} shutdown($s, 1);"
        "my $got = 0; while (my $n = sysread($s, my $b, 65536)) { $got += $n } print $got"
    )
    async with server, HostRooms.started(settings) as rooms:
        async with room(rooms) as here:
            assert int(await printed(here, f"perl -e '{program}'", timeout_s=20)) >= size
        async with room(rooms) as here:
            result = await execute(here, "exec 3<>/dev/tcp/127.0.0.1/9191; sleep 10", timeout_s=0.3)
            assert result.outcome.kind == "timed_out"
        await eventually(lambda: not connections)
