"""Where this host keeps control groups, and the runner's own group there: `caisson/<worker>`.

Invariant: the groups of a dead runner are removed by the next one to start; those of a living one never.
"""

import contextlib
import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog

from caisson.common.errors import Unavailable
from caisson.runner.adapters.cgroups import CONTROLLERS, Cgroup, Hierarchy, kill_members, write
from caisson.runner.adapters.claims import claim, sweep

_PARENT: Final = "caisson"
_PATIENCE_S: Final = 1.0
_RETRY_S: Final = 0.005

log = structlog.get_logger(__name__)


class Cgroups:
    """The groups of one runner."""

    def __init__(self, host: Hierarchy, worker: str) -> None:
        self._host = host
        self._own = host.below(_PARENT).below(worker)
        self._claims: list[int] = []
        self._count = 0

    def start(self) -> None:
        """Make the runner's own group and remove those of dead runners.

        Raises:
            Unavailable: the name belongs to a living runner.
            OSError: the hierarchy is read-only, or a controller is not delegated.
        """
        if self._host.version == 2:  # noqa: PLR2004
            _delegate(self._host.unique[0])
        for path in self._own.unique:
            path.parent.mkdir(exist_ok=True)
            self._hand_down(path.parent)
            self._claims.append(claim(path))
            self._hand_down(path)
            sweep(path.parent, _remove)

    def check(self) -> None:
        """Raise Unavailable unless the runner's own group is still there."""
        for path in self._own.unique:
            if not path.is_dir():
                raise Unavailable(f"cgroup: {path} is gone")

    def make(self) -> Cgroup:
        """Return a group that does not exist yet."""
        self._count += 1
        return Cgroup(self._own.below(str(self._count)))

    def close(self) -> None:
        """Remove the runner's own group, and the one above when it was the last."""
        if self._claims:
            for path in self._own.unique:
                _remove(path)
                with contextlib.suppress(OSError):
                    path.parent.rmdir()
        for fd in self._claims:
            os.close(fd)
        self._claims.clear()

    def _hand_down(self, path: Path) -> None:
        if self._host.version == 2:  # noqa: PLR2004
            _enable_controllers(path)


def find_hierarchy(mountinfo: str, memberships: str) -> Hierarchy:
    """Find the host's control groups from `/proc/self/mountinfo` and `/proc/self/cgroup`.

    Version 2 is used where it has the controllers, else version 1.

    Raises:
        Unavailable: naming the controllers that neither version has.
    """
    own = _read_memberships(memberships)
    version_1: dict[str, Path] = {}
    for line in mountinfo.splitlines():
        fields, _, source = line.partition(" - ")
        root, mount_point = fields.split()[3:5]
        kind, _, options = source.split(maxsplit=2)
        if kind == "cgroup2":
            here = _own_directory(root, Path(mount_point), own.get("", "/"))
            if _has_controllers(here):
                return Hierarchy(version=2, directories=dict.fromkeys(CONTROLLERS, here))
        elif kind == "cgroup":
            for controller in set(options.split(",")) & set(CONTROLLERS):
                version_1[controller] = _own_directory(root, Path(mount_point), own.get(controller, "/"))
    missing = sorted(set(CONTROLLERS) - version_1.keys())
    if missing:
        raise Unavailable(f"cgroup: this host offers no {', '.join(missing)} controller")
    return Hierarchy(version=1, directories=version_1)


def _read_memberships(text: str) -> Mapping[str, str]:
    own: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    return own


def _own_directory(root: str, mount_point: Path, own: str) -> Path:
    """Return the directory of the process's group; `root` is the group that is mounted."""
    inside = own.removeprefix(root) if root != "/" else own
    return mount_point / inside.lstrip("/")


def _has_controllers(directory: Path) -> bool:
    try:
        offered = (directory / "cgroup.controllers").read_text().split()
    except OSError:
        return False
    return set(CONTROLLERS) <= set(offered)


def _enable_controllers(directory: Path) -> None:
    write(directory / "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS))


def _delegate(directory: Path) -> None:
    """Let groups be made below the runner's. A group with processes of its own may not have such: move aside then."""
    try:
        _enable_controllers(directory)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        leaf = directory / "caisson-runner"
        leaf.mkdir(exist_ok=True)
        write(leaf / "cgroup.procs", 0)
        _enable_controllers(directory)


def _remove(own: Path) -> None:
    """Kill and remove a runner's groups; what resists is left to the next sweep."""
    deadline = time.monotonic() + _PATIENCE_S
    for group in (*(child for child in own.iterdir() if child.is_dir()), own):
        while not _killed_and_removed(group):
            if time.monotonic() > deadline:
                log.warning("cgroup.left", group=str(group))
                break
            time.sleep(_RETRY_S)


def _killed_and_removed(group: Path) -> bool:
    kill_members(group)
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
