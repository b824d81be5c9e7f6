"""Directories that belong to one living process: whoever dies loses the lock, and another may clear what is left.

Invariant: a directory is cleared only by whoever holds its lock.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from caisson.common.errors import Unavailable

_ATTEMPTS = 100


def claim(path: Path) -> int:
    """Make a directory and lock it for as long as the returned descriptor is open.

    Raises:
        Unavailable: a living process has it.
        OSError: it cannot be made.
    """
    for _ in range(_ATTEMPTS):
        path.mkdir(parents=True, exist_ok=True)
        fd = _lock(path)
        if fd is None:
            continue  # a sweep of another process has it for a moment
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(fd).st_ino:
                return fd
        os.close(fd)
    raise Unavailable(f"{path} belongs to another runner")


def sweep(parent: Path, clear: Callable[[Path], None]) -> None:
    """Call `clear` for each directory in `parent` whose process is dead, holding its lock."""
    for path in parent.iterdir():
        if path.is_dir():
            fd = _lock(path)
            if fd is not None:
                try:
                    clear(path)
                finally:
                    os.close(fd)


def _lock(path: Path) -> int | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
