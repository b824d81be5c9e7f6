"""Control groups are found and written in both versions of the kernel's interface."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from caisson.common.errors import Unavailable
from caisson.common.leases import Limits
from caisson.runner.adapters.cgroups import CONTROLLERS, Cgroup, Hierarchy
from caisson.runner.adapters.hierarchies import find_hierarchy
from caisson.runner.domain.accounting import LimitEvents
from tests.support.eventually import eventually

LIMITS = Limits(memory_mib=64, pids=10, cpus=0.5)
VERSION_1 = """\
30 20 0:25 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct
31 20 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 20 0:27 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def test_version_1_is_found_below_the_runners_own_groups() -> None:
    found = find_hierarchy(VERSION_1, "4:cpu,cpuacct:/\n3:pids:/box\n2:memory:/docker/1/a\n0::/\n")
    assert found.version == 1
    assert {name: str(path) for name, path in found.directories.items()} == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct",
        "pids": "/sys/fs/cgroup/pids/box",
        "memory": "/sys/fs/cgroup/memory/a",
    }


def test_version_2_is_preferred_where_it_has_the_controllers(tmp_path: Path) -> None:
    own = tmp_path / "system.slice"
    own.mkdir()
    (own / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    mounts = VERSION_1 + f"34 20 0:29 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    found = find_hierarchy(mounts, "0::/system.slice\n")
    assert (found.version, found.unique) == (2, (own,))


def test_a_controller_that_no_version_has_is_named() -> None:
    with pytest.raises(Unavailable, match="no memory, pids controller"):
        find_hierarchy(VERSION_1.splitlines()[0], "4:cpu,cpuacct:/\n")


VERSION_2_FILES = {
    "cpu.max": "50000 100000",
    "memory.max": str(64 << 20),
    "memory.oom.group": "1",
    "memory.swap.max": "0",
    "pids.max": "12",
}
VERSION_1_FILES = {
    "cpu/cpu.cfs_quota_us": "50000",
    "memory/memory.limit_in_bytes": str(64 << 20),
    "memory/memory.memsw.limit_in_bytes": str(64 << 20),
    "pids/pids.max": "12",
}


def version_2(root: Path) -> Hierarchy:
    return Hierarchy(version=2, directories=dict.fromkeys(CONTROLLERS, root))


def version_1(root: Path) -> Hierarchy:
    return Hierarchy(version=1, directories={name: root / name for name in CONTROLLERS})


@pytest.mark.parametrize(
    ("hierarchy", "files"),
    [(version_1, VERSION_1_FILES), (version_2, VERSION_2_FILES)],
    ids=["version 1", "version 2"],
)
def test_the_limits_are_written(
    tmp_path: Path, hierarchy: Callable[[Path], Hierarchy], files: dict[str, str]
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    Cgroup(hierarchy(tmp_path)).limit(LIMITS)
    assert {name: (tmp_path / name).read_text() for name in files} == files


@pytest.mark.parametrize("missing", ["memory.max", "pids.max", "cpu.max", "memory.oom.group"])
def test_a_limit_that_cannot_be_set_is_an_error(tmp_path: Path, missing: str) -> None:
    for name in set(VERSION_2_FILES) - {missing}:
        (tmp_path / name).touch()
    with pytest.raises(OSError, match=missing):
        Cgroup(version_2(tmp_path)).limit(LIMITS)


def test_the_events_of_version_2_are_read(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 1\n")
    (tmp_path / "pids.events").write_text("max 5\n")
    group = Cgroup(version_2(tmp_path))
    assert group.events() == LimitEvents(oom_kills=2, refused_forks=5)
    assert group.join_files == [str(tmp_path / "cgroup.procs")]


@pytest.fixture
def real_version_2() -> Iterator[Path]:
    """A group of the kernel's version 2; it need not have controllers."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not roots or not os.access(roots[0], os.W_OK):
        pytest.skip("this host has no cgroup2 to write to")
    group = roots[0] / f"caisson-test-{os.getpid()}"
    group.mkdir()
    yield group
    if group.exists():
        group.rmdir()


async def test_a_group_of_version_2_is_killed_and_removed(real_version_2: Path) -> None:
    group = Cgroup(version_2(real_version_2))
    script = f"echo $$ >{group.join_files[0]}; sleep 60 & sleep 60"
    process = await asyncio.create_subprocess_exec("sh", "-c", script)
    await eventually(group.populated)
    assert not group.remove()
    group.kill()
    assert await process.wait() == -signal.SIGKILL
    await eventually(group.remove)
    assert not group.populated()
