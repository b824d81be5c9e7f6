"""Where a path leads: inside the box's own world, or towards what belongs to others.

Invariant: a path is judged by its normal form; a part that is not known ends what can be judged.
"""

import posixpath
import re
from typing import Final

from caisson.runner.domain.guards.words import UNKNOWN
from caisson.runner.domain.layout import WORKSPACE

HIDDEN: Final = (
    "/var/lib/caisson",
    "/var/run/caisson",
    "/run/caisson",
    "/etc/caisson",
    "/root",
    "/run/secrets",
    "/var/run/secrets",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd",
    "/var/lib/docker",
)
_PROCESS: Final = re.compile(r"[\d*?\[\]{},!^-]*[\d*?\]}][\d*?\[\]{},!^-]*")
_SELF: Final = frozenset({"self", "thread-self"})
_OTHERS: Final = frozenset({"tenants", "workspaces"})
_OWN: Final = (WORKSPACE, "/tmp", "/usr")  # noqa: S108 - the box's own
_MAX_LINKS: Final = 4


def leads_away(path: str, *, base: str | None, hidden: tuple[str, ...]) -> str | None:
    """Return where a path leads if that is not the box's own world, else None. An unknown `base` is None."""
    path = _home(path.removeprefix("file://"))
    known, is_cut, _ = path.partition(UNKNOWN)
    if is_cut:
        known = known.rpartition("/")[0] + "/" if "/" in known else ""
    if not known:
        return None
    if known.startswith("/"):
        return _absolute(known, hidden)
    return _relative(known, base, hidden)


def resolve(path: str, base: str | None) -> str | None:
    """Return the normal form of a path seen from `base`, or None where that is not known."""
    path = _home(path)
    if UNKNOWN in path or (base is None and not path.startswith("/")):
        return None
    return _normal(posixpath.join(base or "/", path))


def _relative(path: str, base: str | None, hidden: tuple[str, ...]) -> str | None:
    if base is None or ("/" not in path and path != ".."):
        return None
    target = _normal(posixpath.join(base, path))
    if not _inside(base, WORKSPACE):
        return _of_others(target, hidden)
    return target if not _inside(target, WORKSPACE) and target != "/" else None


def _absolute(path: str, hidden: tuple[str, ...]) -> str | None:
    target = _normal(path)
    for _ in range(_MAX_LINKS):
        parts = target.split("/")
        if (
            parts[1:2] != ["proc"]
            or parts[2:3] == []
            or parts[2] not in _SELF
            or parts[3:4] not in (["root"], ["cwd"])
        ):
            break
        target = _normal("/".join(("" if parts[3] == "root" else WORKSPACE, *parts[4:])) or "/")
    if (
        _inside(_normal(path.split("/..", 1)[0] or "/"), WORKSPACE)
        and not _inside(target, WORKSPACE)
        and target != "/"
    ):
        return target
    return _of_others(target, hidden)


def _of_others(target: str, hidden: tuple[str, ...]) -> str | None:
    parts = target.split("/")[1:]
    neighbour = parts[0].startswith("workspace") and not _inside(target, WORKSPACE)
    tenants = not _OTHERS.isdisjoint(parts) and not any(_inside(target, own) for own in _OWN)
    of_runner = any(_inside(target, folder) for folder in (*HIDDEN, *hidden))
    return target if neighbour or tenants or of_runner or _of_process(parts) else None


def _of_process(parts: list[str]) -> bool:
    """A pattern such as `/proc/[0-9]*` with nothing below it shows only that processes exist."""
    match parts:
        case ["proc", process, *below] if _PROCESS.fullmatch(process):
            return process.isdigit() or bool(below)
        case _:
            return False


def _home(path: str) -> str:
    if path == "~" or path.startswith("~/"):
        return WORKSPACE + path[1:]
    if path == "~root" or path.startswith("~root/"):
        return path[1:].replace("root", "/root", 1)
    return path


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/") if path.startswith("/") else posixpath.normpath(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
