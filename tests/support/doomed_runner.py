"""A runner's sandbox in a process of its own, to be killed: it passes on what its box prints."""

import asyncio
import sys
from pathlib import Path

from caisson.runner.adapters.host import HostRooms
from caisson.runner.settings import RunnerSettings
from tests.support.boxes import execute, room


def tell(_: object, __: int, data: bytes) -> None:
    sys.stdout.write(data.decode())
    sys.stdout.flush()


async def main(workspaces_dir: Path) -> None:
    settings = RunnerSettings(nats_password="unused", channel_key="unused", workspaces_dir=workspaces_dir)
    async with HostRooms.started(settings) as rooms, room(rooms) as here:
        await execute(here, "echo running; exec sleep 300", timeout_s=300, live=tell)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
