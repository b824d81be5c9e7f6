"""The command line of a box: caisson-box outside, bubblewrap, caisson-box as process 1 inside, bash.

Invariant: a command's script and environment are arguments to process 1 alone; nothing outside interprets them.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caisson.common.errors import Unavailable
from caisson.common.leases import Limits
from caisson.runner.adapters.rootfs import IDENTITY, INIT
from caisson.runner.domain.boxes import BoxCommand
from caisson.runner.domain.layout import WORKSPACE

BOX_PROGRAM: Final = Path(__file__).parent.parent / "bin" / "caisson-box"

_MIB: Final = 1 << 20
_ARGUMENT_BYTES: Final = 128 << 10
_SHARED_MEMORY_MIB: Final = 64
NAMESPACES: Final = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--hostname", "caisson", "--die-with-parent"),
)
# What process 1 needs to become the tenant; it drops them before the shell starts.
_CAPABILITIES: Final = (
    *("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The two programs outside the box."""

    bubblewrap: str
    box: str

    def check(self) -> None:
        """Raise Unavailable unless both can be executed now."""
        for path in (self.bubblewrap, self.box):
            if not os.access(path, os.X_OK):
                raise Unavailable(f"{Path(path).name} is missing or cannot be executed")


def find_programs() -> Programs:
    """Find bubblewrap on the path, and caisson-box in this package.

    Raises:
        Unavailable: naming the one that is missing.
    """
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise Unavailable("bubblewrap is not installed: there is no bwrap on the PATH")
    programs = Programs(bubblewrap=bubblewrap, box=str(BOX_PROGRAM))
    programs.check()
    return programs


def mount_arguments(rootfs: Path, workspace: Path, identity: Path, limits: Limits) -> list[str]:
    """Return bubblewrap's arguments for what a box sees. The tree brings its own read-only mounts and devices."""
    return [
        *("--dev-bind", str(rootfs), "/", "--proc", "/proc"),
        *("--perms", "1777", "--size", str(limits.disk_mib * _MIB), "--tmpfs", "/tmp"),  # noqa: S108
        *("--perms", "1777", "--size", str(_SHARED_MEMORY_MIB * _MIB), "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--ro-bind", str(identity), IDENTITY, "--bind", str(workspace), WORKSPACE),
    ]


def outer_arguments(programs: Programs, netns_fd: int, join_files: list[str], filter_fd: int) -> list[str]:
    """Return the part of the command line before the mounts: what happens outside and which namespaces are new."""
    enter = [programs.box, "enter", str(netns_fd), *join_files, "--"]
    return [
        *(*enter, programs.bubblewrap, *NAMESPACES, "--as-pid-1"),
        *(*_CAPABILITIES, "--seccomp", str(filter_fd)),
    ]


def inner_arguments(status_fd: int, uid: int, command: BoxCommand) -> list[str]:
    """Return the part of the command line after the mounts: process 1 and the shell."""
    environment = (f"{name}={value}" for name, value in command.environment.items())
    return [
        *("--", INIT, "init", str(status_fd), str(uid), WORKSPACE, *environment),
        *("--", "/bin/bash", "-c", *_script_arguments(command.script)),
    ]


def _script_arguments(script: str) -> tuple[str, ...]:
    """Return what follows `bash -c`: the kernel takes one argument of at most 128 KiB with its NUL, so the longest
    script goes as two, which bash joins again before it looks at either."""
    if len(script.encode()) < _ARGUMENT_BYTES:
        return (script, "bash")
    middle = len(script) // 2
    return ('eval "shift 2; $1$2"', "bash", script[:middle], script[middle:])
