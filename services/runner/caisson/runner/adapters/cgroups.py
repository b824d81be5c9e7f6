"""Control groups, one per command, of version 2 or 1 of the kernel's interface.

Invariant: a group's processes are found in the group, never remembered; a group is gone when its command is.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caisson.common.errors import Unavailable
from caisson.common.leases import Limits
from caisson.runner.domain.accounting import LimitEvents

CONTROLLERS: Final = ("cpu", "pids", "memory")
OWN_PROCESSES: Final = 2
"""The two processes of every box that are not the command's: bubblewrap, and process 1."""

_CPU_PERIOD_US: Final = 100_000
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Where the groups of a runner are: a directory per controller, all the same one in version 2."""

    version: int
    directories: Mapping[str, Path]

    @property
    def unique(self) -> tuple[Path, ...]:
        """Each directory once, in the order in which a command joins them."""
        return tuple(dict.fromkeys(self.directories[controller] for controller in CONTROLLERS))

    def below(self, name: str) -> "Hierarchy":
        """Return the group `name` of this one, in every hierarchy."""
        directories = {controller: path / name for controller, path in self.directories.items()}
        return Hierarchy(version=self.version, directories=directories)


class Cgroup:
    """One command's group."""

    def __init__(self, place: Hierarchy) -> None:
        self._place = place

    @property
    def join_files(self) -> list[str]:
        """The files that a single-threaded process writes "0" to in order to join.

        In version 1, `tasks` moves one thread without the kernel's global lock that `cgroup.procs` takes.
        """
        name = "cgroup.procs" if self._place.version == 2 else "tasks"  # noqa: PLR2004
        return [str(path / name) for path in self._place.unique]

    def create(self, limits: Limits) -> None:
        """Make the group and set its limits.

        Raises:
            OSError: a controller is missing or refuses.
        """
        for path in self._place.unique:
            path.mkdir()
        self.limit(limits)

    def limit(self, limits: Limits) -> None:
        """Set the limits of a group that exists."""
        quota_us = max(1000, int(limits.cpus * _CPU_PERIOD_US))
        memory_bytes = limits.memory_mib * _MIB
        self._set("pids", "pids.max", limits.pids + OWN_PROCESSES)
        if self._place.version == 1:
            self._set("cpu", "cpu.cfs_quota_us", quota_us)
            self._set("memory", "memory.limit_in_bytes", memory_bytes)
            self._set("memory", "memory.memsw.limit_in_bytes", memory_bytes, optional=True)
        else:
            self._set("cpu", "cpu.max", f"{quota_us} {_CPU_PERIOD_US}")
            self._set("memory", "memory.max", memory_bytes)
            self._set("memory", "memory.swap.max", 0, optional=True)
            self._set("memory", "memory.oom.group", 1)

    def events(self) -> LimitEvents:
        """Read how often the kernel enforced a limit by force."""
        memory_file = "memory.oom_control" if self._place.version == 1 else "memory.events"
        return LimitEvents(
            oom_kills=self._count("memory", memory_file, "oom_kill"),
            refused_forks=self._count("pids", "pids.events", "max"),
        )

    def populated(self) -> bool:
        """Say whether a process is left."""
        return any(_processes(path) for path in self._place.unique)

    def kill(self) -> None:
        """Send SIGKILL to every process of the group; call until it is no longer `populated`."""
        for path in self._place.unique:
            if self._place.version == 1:
                kill_members(path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    (path / "cgroup.kill").write_text("1")

    def remove(self) -> bool:
        """Remove the group, if it is empty; say whether it is gone."""
        gone = True
        for path in self._place.unique:
            try:
                path.rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                gone = False
        return gone

    def _set(self, controller: str, name: str, value: int | str, *, optional: bool = False) -> None:
        write(self._place.directories[controller] / name, value, optional=optional)

    def _count(self, controller: str, name: str, key: str) -> int:
        for line in (self._place.directories[controller] / name).read_text().splitlines():
            if line.startswith(f"{key} "):
                return int(line.rpartition(" ")[2])
        raise Unavailable(f"cgroup: {name} has no {key}")


def write(path: Path, value: int | str, *, optional: bool = False) -> None:
    """Write one value to an interface file; a file that is `optional` may be missing."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if optional:
            return
        raise
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def _processes(path: Path) -> list[int]:
    try:
        return [int(line) for line in (path / "cgroup.procs").read_text().split()]
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENODEV}:  # the group is gone
            return []
        raise


def kill_members(path: Path) -> None:
    """Send SIGKILL to every process of a group."""
    for pid in _processes(path):
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                if pid in _processes(path):  # the number may have gone to another process meanwhile
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)
