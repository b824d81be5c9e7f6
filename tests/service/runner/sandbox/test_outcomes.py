"""How a command ended is what the kernel says, whatever the command prints or returns."""

import asyncio
import contextlib
from time import monotonic

import pytest

from caisson.common.outcome import Cancelled, DiskFull, Exited, Signalled
from caisson.runner.adapters.host import HostRooms
from tests.support.boxes import execute, printed, room
from tests.support.eventually import eventually

FORK_BOMB = "bomb() { bomb | bomb & wait; }; bomb"
FILL_MEMORY = "x=$(head -c 200M /dev/zero | tr '\\0' x)"

ENDINGS = [
    ("exit 0", Exited(exit_code=0), "success"),
    ("echo a; exit 7", Exited(exit_code=7), "a bare exit ends the shell, not the room"),
    ("exit 137", Exited(exit_code=137), "a program may return what a shell returns for SIGKILL"),
    ("exec true", Exited(exit_code=0), "the shell is replaced"),
    ("kill -KILL $$", Signalled(signal=9), "the shell's own SIGKILL"),
    ("kill -TERM $$", Signalled(signal=15), "any other signal"),
    ("sh -c 'kill -KILL $$'; true", Exited(exit_code=0), "a killed child does not kill the shell"),
    ("set -e; false; echo no", Exited(exit_code=1), "errexit"),
    ("nonsense", Exited(exit_code=127), "no such program"),
    ("echo ended 9 >&1; echo ended 0 >&2; exit 3", Exited(exit_code=3), "the report is out of reach"),
    ("cat; read line; exit 5", Exited(exit_code=5), "standard input is empty"),
    ("if then", Exited(exit_code=2), "a syntax error"),
]


@pytest.mark.parametrize(("script", "outcome", "why"), ENDINGS, ids=[why for *_, why in ENDINGS])
async def test_the_outcome_is_the_shells_wait_status(
    rooms: HostRooms, script: str, outcome: object, why: str
) -> None:
    async with room(rooms) as here:
        assert (await execute(here, script)).outcome == outcome


@pytest.mark.parametrize("size_bytes", [(128 << 10) - 1, 128 << 10], ids=["one argument", "two arguments"])
async def test_the_longest_commands_run_like_any_other(rooms: HostRooms, size_bytes: int) -> None:
    script = 'echo "$0 $#"; exit 3 #'
    async with room(rooms) as here:
        result = await execute(here, script + "x" * (size_bytes - len(script)))
        assert (result.outcome, result.stdout.text) == (Exited(exit_code=3), "bash 0\n")


LIMITS = [
    (FILL_MEMORY, "oom_killed", "memory over the limit"),
    (f"({FILL_MEMORY}) & wait; exit 0", "oom_killed", "a killed child is not hidden by the shell's own success"),
    (FORK_BOMB, "pids_exhausted", "a fork bomb"),
    ("head -c 20M /dev/zero >file", "disk_full", "blocks"),
    ("for ((i = 0; i < 9999; i++)); do : >$i || exit; done", "disk_full", "inodes"),
]


@pytest.mark.parametrize(("script", "kind", "why"), LIMITS, ids=[why for *_, why in LIMITS])
async def test_a_limit_that_was_reached_names_itself(rooms: HostRooms, script: str, kind: str, why: str) -> None:
    async with room(rooms) as here:
        result = await execute(here, script, timeout_s=20)
        assert result.outcome.kind == kind, result
        assert await printed(here, "echo alive") == "alive\n"


async def test_a_full_workspace_does_not_fail_a_command_that_succeeds(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        full = await execute(here, "head -c 20M /dev/zero >file; exit 1")
        assert isinstance(full.outcome, DiskFull)
        assert (await execute(here, "ls -l file")).outcome == Exited(exit_code=0)


async def test_a_background_child_does_not_hold_the_command(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        result = await execute(here, "sleep 60 & echo hi")
    assert result.outcome == Exited(exit_code=0)
    assert result.stdout.text == "hi\n"
    assert result.duration_ms < 1000


async def test_a_time_out_keeps_the_output_and_kills_every_descendant(rooms: HostRooms) -> None:
    script = """
        trap '' TERM
        setsid bash -c 'while :; do echo x >>log; sleep 0.01; done' &
        echo before
        sleep 60
    """
    async with room(rooms) as here:
        result = await execute(here, script, timeout_s=0.3)
        assert result.outcome.kind == "timed_out"
        assert result.stdout.text == "before\n"
        assert 250 < result.duration_ms < 1500
        size = await printed(here, "wc -c <log")
        assert await printed(here, "sleep 0.2; wc -c <log") == size


async def test_cancelling_a_room_ends_its_command_at_once(rooms: HostRooms) -> None:
    seen: list[bytes] = []
    async with room(rooms) as here:
        running = asyncio.create_task(
            execute(here, "echo started; sleep 60", live=lambda _, __, data: seen.append(data))
        )
        await eventually(lambda: seen)
        here.cancel()
        result = await running
        assert result.outcome == Cancelled()
        assert result.stdout.text == "started\n"
        here.cancel()
        assert await printed(here, "echo alive") == "alive\n"


async def test_cancelling_the_waiting_task_kills_the_box(rooms: HostRooms) -> None:
    seen: list[bytes] = []
    async with room(rooms) as here:
        script = "echo started; while :; do echo x >>log; sleep 0.01; done"
        running = asyncio.create_task(execute(here, script, live=lambda _, __, data: seen.append(data)))
        await eventually(lambda: seen)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert running.cancelled()
        size = await printed(here, "wc -c <log")
        assert await printed(here, "sleep 0.1; wc -c <log") == size


async def test_a_fork_bomb_leaves_others_alone(rooms: HostRooms) -> None:
    async with room(rooms) as bomb, room(rooms, uid=10_002, run_id="run_2") as neighbour:
        bombing = asyncio.create_task(execute(bomb, FORK_BOMB, timeout_s=20))
        slowest = 0.0
        while not bombing.done():
            began = monotonic()
            await printed(neighbour, "true")
            slowest = max(slowest, monotonic() - began)
        assert (await bombing).outcome.kind == "pids_exhausted"
    assert slowest < 0.5


@pytest.mark.parametrize(
    ("script", "why"),
    [("x" * 300_000, "longer than the kernel takes"), ("echo \0", "a NUL cannot be passed on")],
    ids=["too long", "nul"],
)
async def test_a_command_that_cannot_be_passed_on_is_not_started(rooms: HostRooms, script: str, why: str) -> None:
    async with room(rooms) as here:
        result = await execute(here, script)
        assert result.outcome.kind == "not_started"
        assert await printed(here, "echo alive") == "alive\n"
