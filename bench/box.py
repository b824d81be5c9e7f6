"""What a box costs: the full one beside a bare bubblewrap of the same mounts, and beside bash alone.

All three run the same empty command, started and captured by the same code, interleaved in one process.
"""

import resource
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import cast

import uvloop

from bench.figures import Figure
from caisson.common.leases import Limits
from caisson.runner.adapters.bubblewrap import NAMESPACES
from caisson.runner.adapters.cgroups import Cgroup
from caisson.runner.adapters.host import HostRooms
from caisson.runner.adapters.processes import BoxProcess
from caisson.runner.adapters.rooms import HostRoom
from caisson.runner.domain.accounting import LimitEvents
from caisson.runner.domain.boxes import BoxCommand, Place
from caisson.runner.domain.layout import COMMAND_PATH
from caisson.runner.settings import RunnerSettings

ROUNDS = 200
RATIO_BAR = 1.5
COMMAND = BoxCommand(script=":", environment={"PATH": COMMAND_PATH}, timeout_s=10)


def run() -> list[Figure]:
    """Return the figures: medians in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        return uvloop.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    settings = RunnerSettings(nats_password="bench", channel_key="bench", workspaces_dir=folder)
    async with HostRooms.started(settings) as rooms:
        await rooms.check()
        place = Place(uid=10_001, run_id="run_bench", request_id="bench", limits=Limits())
        room = await rooms.enter(place)
        samples: dict[str, list[float]] = {"box_ms": [], "bwrap_ms": [], "bash_ms": []}
        bare = ["/usr/bin/bwrap", *NAMESPACES, *room.mounts, "--", "/bin/bash", "-c", ":"]
        for _ in range(ROUNDS):
            samples["box_ms"].append(await _box(room))
            samples["bwrap_ms"].append(await _plain(bare))
            samples["bash_ms"].append(await _plain(["/bin/bash", "-c", ":"]))
        await room.leave()
        room_ms, cpu_ms = await _whole_runs(rooms)
    return _figures({name: median(values) for name, values in samples.items()}, room_ms, cpu_ms)


async def _box(room: HostRoom) -> float:
    return (await room.execute(COMMAND, _nobody)).duration_ms


async def _plain(arguments: list[str]) -> float:
    began = perf_counter()
    process = BoxProcess(
        lambda _: arguments, passed=(), cgroup=_NO_CGROUP, timeout_s=10, output_bytes=1024, live=_nobody
    )
    await process.finish()
    return (perf_counter() - began) * 1000


async def _whole_runs(rooms: HostRooms) -> tuple[float, float]:
    """Return the median time of a whole room with one command, and the CPU time that each took."""
    took = []
    before = _cpu_s()
    for number in range(ROUNDS):
        began = perf_counter()
        place = Place(uid=10_001 + number, run_id=f"run_{number}", request_id="bench", limits=Limits())
        room = await rooms.enter(place)
        await room.execute(COMMAND, _nobody)
        await room.leave()
        took.append((perf_counter() - began) * 1000)
    return median(took), (_cpu_s() - before) * 1000 / ROUNDS


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _nobody(*_: object) -> None:
    """Live output that nobody follows."""


class _NoCgroup:
    def events(self) -> LimitEvents:
        return LimitEvents()

    def populated(self) -> bool:
        return False

    def remove(self) -> bool:
        return True


_NO_CGROUP = cast("Cgroup", _NoCgroup())


def _figures(medians: dict[str, float], room_ms: float, cpu_ms: float) -> list[Figure]:
    ratio = medians["box_ms"] / medians["bwrap_ms"]
    plain = {**medians, "room_ms": room_ms, "cpu_ms": cpu_ms}
    return [
        Figure(name="box_ratio", value=ratio, unit="times bubblewrap", bar=RATIO_BAR),
        *(Figure(name=name, value=value, unit="ms") for name, value in plain.items()),
    ]
