"""The host proves that it confines or makes no rooms; runners on one host leave each other alone, dead or alive."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from caisson.common.errors import Unavailable
from caisson.common.outcome import Exited
from caisson.runner.adapters import bubblewrap
from caisson.runner.adapters.hierarchies import find_hierarchy
from caisson.runner.adapters.host import HostRooms
from caisson.runner.settings import RunnerSettings
from tests.support.boxes import execute, place, printed, room
from tests.support.eventually import eventually

REPOSITORY = Path(__file__).parents[4]


def groups_of(host: str) -> list[Path]:
    """The control groups of one runner: its own, and those of its boxes."""
    hierarchy = find_hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    owns = hierarchy.below("caisson").below(host).unique
    return [group for own in owns if own.is_dir() for group in (own, *own.iterdir()) if group.is_dir()]


async def test_without_bubblewrap_there_are_no_rooms_until_it_is_back(
    runner_settings: RunnerSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with HostRooms.started(runner_settings) as rooms:
        with pytest.raises(Unavailable, match="bubblewrap"):
            await rooms.check()
        with pytest.raises(Unavailable, match="bubblewrap"):
            await rooms.enter(place())
        monkeypatch.undo()
        await rooms.check()
        async with room(rooms) as here:
            assert await printed(here, "echo ok") == "ok\n"


async def test_a_missing_system_tree_is_named(runner_settings: RunnerSettings, tmp_path: Path) -> None:
    async with HostRooms.started(runner_settings.model_copy(update={"rootfs_dir": tmp_path})) as rooms:
        with pytest.raises(Unavailable, match="root file system"):
            await rooms.check()


async def test_a_system_tree_without_a_shell_proves_nothing(runner_settings: RunnerSettings, tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    async with HostRooms.started(runner_settings.model_copy(update={"rootfs_dir": tmp_path})) as rooms:
        with pytest.raises(Unavailable, match="execute the shell"):
            await rooms.check()
        with pytest.raises(Unavailable, match="execute the shell"):
            await rooms.enter(place())


async def test_a_mechanism_that_disappears_is_noticed(
    runner_settings: RunnerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that can be taken away stands for bubblewrap."""
    program = tmp_path / "bwrap"
    program.symlink_to("/usr/bin/bwrap")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    async with HostRooms.started(runner_settings) as rooms:
        await rooms.check()
        async with room(rooms) as here:
            program.unlink()
            result = await execute(here, "echo bare")
            assert result.outcome.kind == "not_started"
            assert result.stdout.text == ""
        with pytest.raises(Unavailable, match="bwrap"):
            await rooms.check()


@pytest.mark.parametrize("uid", [0, 1000, 9999], ids=["root", "a user of the host", "below the tenants"])
async def test_only_a_tenants_uid_gets_a_room(rooms: HostRooms, uid: int) -> None:
    with pytest.raises(Unavailable, match="uid"):
        await rooms.enter(place(uid=uid))


@pytest.mark.parametrize("run_id", ["../run_1", "a/b", "", "."], ids=["up", "below", "empty", "here"])
async def test_a_run_id_cannot_lead_elsewhere(rooms: HostRooms, run_id: str) -> None:
    with pytest.raises(Unavailable, match="workspace"):
        await rooms.enter(place(run_id=run_id))


async def test_the_program_of_process_1_refuses_to_run_anything_as_root() -> None:
    process = await asyncio.create_subprocess_exec(
        *(bubblewrap.BOX_PROGRAM, "init", "2", "0", "/", "--", "/bin/true"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()
    assert process.returncode == 125
    assert told.startswith(b"failed ")


async def test_a_living_runner_is_left_alone_by_the_next_one(
    rooms: HostRooms, runner_settings: RunnerSettings
) -> None:
    async with room(rooms) as here:
        await printed(here, "echo kept >note")
        async with HostRooms.started(runner_settings) as others, room(others) as there:
            assert await printed(there, "echo ok") == "ok\n"
        assert await printed(here, "cat note") == "kept\n"


async def test_what_a_killed_runner_leaves_dies_with_it_or_is_swept(runner_settings: RunnerSettings) -> None:
    before = set(runner_settings.workspaces_dir.iterdir())
    doomed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.doomed_runner", str(runner_settings.workspaces_dir)),
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert doomed.stdout is not None
    assert await doomed.stdout.readline() == b"running\n"
    boxed = psutil.Process(doomed.pid).children(recursive=True)
    assert any(process.name() == "sleep" for process in boxed)
    (left,) = set(runner_settings.workspaces_dir.iterdir()) - before
    assert len(groups_of(left.name)) > 1
    os.kill(doomed.pid, signal.SIGKILL)
    await doomed.wait()

    await eventually(lambda: not any(process.is_running() for process in boxed))
    async with HostRooms.started(runner_settings) as rooms:
        assert groups_of(left.name) == []
        assert not left.exists()
        await rooms.check()


async def test_a_stopped_runner_leaves_nothing(runner_settings: RunnerSettings) -> None:
    before = set(runner_settings.workspaces_dir.iterdir())
    mounts = Path("/proc/self/mountinfo").read_text().count("\n")
    async with HostRooms.started(runner_settings) as rooms, room(rooms) as here:
        (own,) = set(runner_settings.workspaces_dir.iterdir()) - before
        assert groups_of(own.name)
        assert (await execute(here, "true")).outcome == Exited(exit_code=0)
    assert groups_of(own.name) == []
    assert set(runner_settings.workspaces_dir.iterdir()) == before
    assert Path("/proc/self/mountinfo").read_text().count("\n") == mounts
