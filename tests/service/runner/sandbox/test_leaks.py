"""However commands end, nothing of them is left: no process, group, mount, thread or descriptor."""

import asyncio
import contextlib
from pathlib import Path

import psutil

from caisson.runner.adapters.host import HostRooms
from caisson.runner.settings import RunnerSettings
from tests.service.runner.sandbox.test_host import groups_of
from tests.support.boxes import execute, room
from tests.support.eventually import eventually

COMMANDS = 200
AT_ONCE = 8


def held(settings: RunnerSettings) -> dict[str, int]:
    hosts = [path.name for path in settings.workspaces_dir.iterdir()]
    children = psutil.Process().children(recursive=True)
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "groups": sum(len(groups_of(host)) for host in hosts),
        "mounts": Path("/proc/self/mountinfo").read_text().count("\n"),
        "processes": sum(child.name() in {"bash", "bwrap", "caisson-box", "sleep"} for child in children),
    }


async def one_run(rooms: HostRooms, number: int) -> None:
    """Four commands: one ends, one runs out of time, one loses its task, and one its room."""
    async with room(rooms, uid=10_100 + number, run_id=f"run_{number}") as here:
        await execute(here, "sleep 60 & echo x >file; curl -sS $API_HOST; : </dev/tcp/192.0.2.1/80")
        await execute(here, "sleep 60 & sleep 60", timeout_s=0.02)
        cancelled = asyncio.create_task(execute(here, "sleep 60 & sleep 60"))
        await asyncio.sleep(0)
        cancelled.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await cancelled
        abandoned = asyncio.create_task(execute(here, "sleep 60 & sleep 60"))
        await asyncio.sleep(0)
    assert (await abandoned).outcome.kind == "cancelled"


async def test_nothing_is_left_of_two_hundred_commands(rooms: HostRooms, runner_settings: RunnerSettings) -> None:
    await one_run(rooms, 0)
    before = held(runner_settings)
    gate = asyncio.Semaphore(AT_ONCE)

    async def gated(number: int) -> None:
        async with gate:
            await one_run(rooms, number)

    async with asyncio.TaskGroup() as group:
        for number in range(COMMANDS // 4):
            group.create_task(gated(number))

    def nothing_more_is_held() -> bool:
        return all(count <= before[what] for what, count in held(runner_settings).items())

    await eventually(nothing_more_is_held)
