"""The lock on the folder of the embedded index: one service at a time, its engine's process included."""

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep

from caisson.common.errors import Misconfigured

_REFUSED_AFTER_S = 1.0
_ORPHAN_ENDS_WITHIN_S = 30.0
_POLL_S = 0.02


def locked(folder: Path) -> int:
    """Make and lock the folder; return the descriptor that holds the lock until the last copy of it is closed.

    A service that was killed leaves an engine behind that ends as soon as it notices, which on a busy host takes its
    time while it is still starting: this waits for it, and hardly for a service that lives.

    Raises:
        Misconfigured: when another process has it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    began = monotonic()
    while not _taken(lock):
        holder = os.pread(lock, 32, 0).decode() or "?"
        if monotonic() - began >= (_REFUSED_AFTER_S if _lives(holder) else _ORPHAN_ENDS_WITHIN_S):
            os.close(lock)
            raise Misconfigured(
                f"the index in {folder} is open in process {holder}: the embedded index serves one process; "
                "stop that one, or run several with MEMORY_INDEX=server"
            )
        sleep(_POLL_S)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def is_in_place(folder: Path, lock: int) -> bool:
    """Whether the lock still is the folder's, which may have been removed, and made by another service, since."""
    try:
        return os.path.samestat(os.fstat(lock), (folder / "lock").stat())
    except FileNotFoundError:
        return False


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lives(holder: str) -> bool:
    """Whether the service that took the lock lives; one that cannot be told from a living one does."""
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OSError):
        return True
    return True
