"""What a command is and what it can see: its own run, and nothing else of the host."""

import asyncio
import os
from pathlib import Path

import pytest

from caisson.common.outcome import Exited
from caisson.runner.adapters.host import HostRooms
from caisson.runner.settings import RunnerSettings
from tests.support.boxes import UID, execute, printed, room
from tests.support.eventually import eventually

NO_CAPABILITY = "0000000000000000"


async def test_the_command_is_the_tenants_uid_without_any_privilege(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        status = await printed(here, "cat /proc/self/status")
        whoami = await printed(here, "id; hostname; ulimit -c")
    seen = dict(line.split(":", 1) for line in status.splitlines())
    assert seen["Uid"].split() == seen["Gid"].split() == [str(UID)] * 4
    assert seen["Groups"].strip() == ""
    assert {seen[f"Cap{kind}"].strip() for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {NO_CAPABILITY}
    assert seen["NoNewPrivs"].strip() == "1"
    assert seen["Seccomp"].strip() == "2"
    assert whoami.splitlines() == [
        f"uid={UID}(tenant) gid={UID}(tenant) groups={UID}(tenant)",
        "caisson",
        "0",
    ]


async def test_the_environment_is_exactly_what_was_given(rooms: HostRooms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNER_CHANNEL_KEY", "secret of the runner")
    async with room(rooms) as here:
        environment = await printed(here, "tr '\\0' '\\n' </proc/$$/environ", WORD="two words = \n 日本")
        everything = await printed(here, "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true")
    assert environment == (
        "PATH=/opt/caisson/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\n"
        "API_HOST=http://127.0.0.1:9191\nHOME=/workspace\nWORD=two words = \n 日本\n"
    )
    assert "secret of the runner" not in everything


async def test_a_hostile_environment_is_interpreted_inside_only(rooms: HostRooms) -> None:
    """The loader's variables would run the tenant's code as root in a program outside the box."""
    async with room(rooms) as here:
        result = await execute(here, "id -u", LD_PRELOAD="/workspace/evil.so", BASH_ENV="/workspace/rc", IFS="x")
    assert result.outcome == Exited(exit_code=0)
    assert result.stdout.text == f"{UID}\n"
    assert "evil.so" in result.stderr.text


async def test_no_descriptor_is_inherited_and_no_input_waits(rooms: HostRooms) -> None:
    held = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(held, True)  # noqa: FBT003
    try:
        async with room(rooms) as here:
            assert await printed(here, "ls /proc/$$/fd; true") == "0\n1\n2\n"
            assert (
                await printed(here, "readlink /proc/self/fd/0; cat; read -r line || echo end") == "/dev/null\nend\n"
            )
    finally:
        os.close(held)


REFUSED_CALLS = [
    ("unshare --mount true", "a mount namespace"),
    ("unshare --user true", "a user namespace"),
    ("unshare --net true", "a network namespace"),
    ("mount -t tmpfs none /tmp", "a mount"),
    ("umount /proc", "an unmount"),
    ("nsenter --target $$ --uts true", "entering a namespace"),
    ("chroot / true", "another root"),
    ("setpriv --reuid 0 true", "another uid"),
    ("hostname other", "another name"),
    ("dmesg", "the kernel's log"),
    ("kill -0 1", "a signal to process 1"),
    ("echo 1 >/proc/sys/kernel/core_pattern", "a setting of the kernel"),
    ("echo 0 >/proc/1/oom_score_adj", "a setting of process 1"),
    ("ls /proc/1/fd", "the descriptors of process 1"),
    ("touch /usr/new", "a file in the system tree"),
    ("touch /etc/new", "a file in the configuration"),
    ("touch /dev/new", "a device"),
    ("touch /new", "a file in the root"),
    ("cat /etc/shadow", "the host's passwords"),
    ("ls /root /home /var/lib /sys", "the host's other directories"),
]


@pytest.mark.parametrize(("script", "why"), REFUSED_CALLS, ids=[why for _, why in REFUSED_CALLS])
async def test_the_kernel_refuses(rooms: HostRooms, script: str, why: str) -> None:
    async with room(rooms) as here:
        result = await execute(here, script)
    assert isinstance(result.outcome, Exited)
    assert result.outcome.exit_code != 0
    assert "command not found" not in result.stderr.text


PROGRAM_CALLS = """
use strict; use warnings; use Errno; use Socket;
my %calls = (add_key => 248, keyctl => 250, bpf => 321, perf_event_open => 298, userfaultfd => 323, ptrace => 101,
    kexec_load => 246, init_module => 175, process_vm_readv => 310, clone3 => 435, io_uring_setup => 425,
    move_mount => 429, open_tree => 428, fsopen => 430, setns => 308, unshare => 272);
for my $name (sort keys %calls) { $! = 0; syscall($calls{$name}, 0, 0, 0, 0, 0, 0); print "$name ", $! + 0, "\\n"; }
my @sockets = ([17, 3], [17, 2], [2, 3], [10, 3], [16, 3], [40, 1], [38, 5], [2, 1], [2, 2], [10, 1], [1, 1]);
for my $pair (@sockets) { print "socket @$pair ", (socket(my $s, $$pair[0], $$pair[1], 0) ? 0 : $! + 0), "\\n"; }
$! = 0; syscall(41, 4294967312, 3, 0); print "socket with high bits ", $! + 0, "\\n";
$! = 0; syscall(56, 0x10000000, 0, 0, 0, 0); print "clone with a user namespace ", $! + 0, "\\n";
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls are those of x86-64")
async def test_the_filter_refuses_what_it_names_and_nothing_that_programs_need(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        answers = (await printed(here, f"perl -e '{PROGRAM_CALLS}'")).splitlines()
    not_permitted, no_such_call, no_such_family = 1, 38, 97
    told = dict(line.rsplit(" ", 1) for line in answers)
    assert {name: int(number) for name, number in told.items()} == {
        **dict.fromkeys(("add_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "ptrace"), not_permitted),
        **dict.fromkeys(("kexec_load", "init_module", "process_vm_readv", "move_mount"), not_permitted),
        **dict.fromkeys(("open_tree", "fsopen", "setns", "unshare"), not_permitted),
        **dict.fromkeys(("clone3", "io_uring_setup"), no_such_call),
        **dict.fromkeys(("socket 17 3", "socket 2 3", "socket 10 3", "socket 16 3"), not_permitted),
        **dict.fromkeys(("socket 17 2", "socket 40 1", "socket 38 5"), no_such_family),
        **dict.fromkeys(("socket 2 1", "socket 2 2", "socket 10 1", "socket 1 1"), 0),
        "socket with high bits": not_permitted,
        "clone with a user namespace": not_permitted,
    }


async def test_another_tenants_run_is_not_there(rooms: HostRooms, runner_settings: RunnerSettings) -> None:
    async with room(rooms) as mine, room(rooms, uid=10_002, run_id="run_2") as theirs:
        await printed(mine, "echo secret >note; echo secret >/tmp/note; echo secret >/dev/shm/note")
        assert await printed(theirs, "ls -A /workspace /tmp /dev/shm; ipcs -m | grep -c 0x || true") == (
            "/dev/shm:\n\n/tmp:\n\n/workspace:\n0\n"
        )
        (path,) = runner_settings.workspaces_dir.glob(f"*/tenants/{UID}/run_1")
        for directory in (path, path.parent, path.parent.parent):
            assert directory.stat().st_mode & 0o077 == 0
        assert path.stat().st_uid == path.stat().st_gid == UID
        assert (await execute(theirs, f"ls {path} {path.parent}")).outcome == Exited(exit_code=2)
        names = await printed(
            theirs, "cat /proc/self/mountinfo /proc/mounts /etc/passwd; ls -R /run /opt /var; ps -e"
        )
        assert str(UID) not in names
        assert "run_1" not in names
        assert str(runner_settings.workspaces_dir) not in names


async def test_two_boxes_share_nothing_but_the_workspace(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        await printed(here, "echo kept >note; echo gone >/tmp/note; export GONE=1; sleep 60 & set -e -o pipefail")
        assert await printed(here, "cat note; ls /tmp; echo ${GONE-unset}; false; ps -e | grep -c sleep; true") == (
            "kept\nunset\n0\n"
        )


async def test_a_tenants_processes_cannot_reach_those_of_another_box(rooms: HostRooms) -> None:
    seen: list[bytes] = []
    async with room(rooms) as mine, room(rooms, uid=10_002, run_id="run_2") as theirs:
        script = "echo started; until [[ -e stop ]]; do sleep 0.01; done; echo alive"
        running = asyncio.create_task(execute(mine, script, live=lambda _, __, data: seen.append(data)))
        await eventually(lambda: seen)
        await execute(theirs, "kill -KILL $(seq 1 400) -1")
        await printed(mine, "touch stop")
        assert (await running).stdout.text == "started\nalive\n"


async def test_nothing_of_a_room_is_left(rooms: HostRooms, runner_settings: RunnerSettings) -> None:
    async with room(rooms) as here:
        await printed(here, "echo x >note; sleep 60 &")
        assert list(runner_settings.workspaces_dir.glob(f"*/tenants/{UID}/run_1"))
    assert not list(runner_settings.workspaces_dir.glob("*/tenants/*"))
    assert "run_1" not in Path("/proc/self/mountinfo").read_text()
