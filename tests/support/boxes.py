"""Building places and commands for boxes, and what a test reads of the results."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from caisson.common.leases import Limits
from caisson.runner.domain.boxes import BoxCommand, BoxResult, LiveOutput, Place, Room, Rooms
from caisson.runner.domain.layout import API_HOST, COMMAND_PATH

SMALL = Limits(memory_mib=64, pids=32, disk_mib=8, output_kib=64)
UID = 10_001


def place(*, uid: int = UID, run_id: str = "run_1", request_id: str = "req_1", **limits: Any) -> Place:
    return Place(uid=uid, run_id=run_id, request_id=request_id, limits=SMALL.model_copy(update=limits))


@asynccontextmanager
async def room(rooms: Rooms, **at: Any) -> AsyncIterator[Room]:
    """A room for the time of the context."""
    made = await rooms.enter(place(**at))
    try:
        yield made
    finally:
        await made.leave()


def command(script: str, *, timeout_s: float = 5, **environment: str) -> BoxCommand:
    given = {"PATH": COMMAND_PATH, "API_HOST": API_HOST, "HOME": "/workspace"}
    return BoxCommand(script=script, environment={**given, **environment}, timeout_s=timeout_s)


def unwatched(*_: object) -> None:
    """Live output that nobody follows."""


async def execute(
    where: Room, script: str, *, timeout_s: float = 5, live: LiveOutput = unwatched, **environment: str
) -> BoxResult:
    return await where.execute(command(script, timeout_s=timeout_s, **environment), live)


async def printed(where: Room, script: str, **options: Any) -> str:
    """What a command that must succeed printed."""
    result = await execute(where, script, **options)
    assert result.outcome.kind == "exited", result
    assert result.outcome.exit_code == 0, result
    return result.stdout.text
