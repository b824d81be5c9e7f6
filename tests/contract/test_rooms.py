"""The fake rooms of the service tests keep the promises that the host's rooms keep."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from caisson.common.leases import Limits
from caisson.common.outcome import Cancelled, Exited, TimedOut
from caisson.runner.adapters.host import HostRooms
from caisson.runner.domain.boxes import BoxCommand, Place, Room, Rooms
from caisson.runner.settings import RunnerSettings
from tests.support.fake_rooms import FakeRooms

Heard = list[tuple[str, int, bytes]]


def command(script: str, *, timeout_s: float = 10) -> BoxCommand:
    return BoxCommand(script=script, environment={"PATH": "/usr/bin:/bin"}, timeout_s=timeout_s)


@pytest.fixture(params=["fake", "host"])
async def rooms(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rooms]:
    if request.param == "fake":
        yield FakeRooms()
        return
    settings = RunnerSettings.model_validate(
        {"nats_password": "k", "channel_key": "k", "workspaces_dir": tmp_path, "warm_namespaces": 1}
    )
    host = HostRooms(settings)
    await host.start()
    yield host
    await host.close()


@asynccontextmanager
async def entered(rooms: Rooms) -> AsyncIterator[Room]:
    await rooms.check()
    room = await rooms.enter(Place(uid=10_000, run_id="run_1", request_id="req_1", limits=Limits()))
    try:
        yield room
    finally:
        await room.leave()


def nothing(*_: object) -> None:
    """Live output that nobody hears."""


async def test_a_command_prints_live_and_in_its_result(rooms: Rooms) -> None:
    heard: Heard = []
    async with entered(rooms) as room:
        result = await room.execute(command("echo hello"), lambda *piece: heard.append(piece))
    assert result.outcome == Exited(exit_code=0)
    assert result.stdout.text == "hello\n"
    assert heard == [("stdout", 0, b"hello\n")]


async def test_an_exit_code_is_told(rooms: Rooms) -> None:
    async with entered(rooms) as room:
        assert (await room.execute(command("exit 3"), nothing)).outcome == Exited(exit_code=3)


async def test_a_time_limit_ends_a_command(rooms: Rooms) -> None:
    async with entered(rooms) as room:
        assert isinstance((await room.execute(command("sleep 100", timeout_s=0.1), nothing)).outcome, TimedOut)


async def test_a_cancelled_command_is_killed_and_says_so(rooms: Rooms) -> None:
    async with entered(rooms) as room:
        running = asyncio.create_task(room.execute(command("sleep 100"), nothing))
        await asyncio.sleep(0)
        room.cancel()
        assert (await asyncio.wait_for(running, 5)).outcome == Cancelled()


async def test_cancelling_the_caller_kills_the_command_and_leaves_the_room_usable(rooms: Rooms) -> None:
    async with entered(rooms) as room:
        running = asyncio.create_task(room.execute(command("sleep 100"), nothing))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 5)
        assert (await room.execute(command("exit 0"), nothing)).outcome == Exited(exit_code=0)
