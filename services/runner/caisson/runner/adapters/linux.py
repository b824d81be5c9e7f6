"""The system calls that Python 3.11 does not offer: mounts and namespaces. Each raises OSError as `os` does."""

import _thread
import asyncio
import ctypes
import os
from collections.abc import Callable
from enum import IntFlag
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

CLONE_NEWNS = 0x0002_0000
CLONE_NEWNET = 0x4000_0000
_MNT_DETACH = 2


class Mount(IntFlag):
    """Flags of mount(2)."""

    READ_ONLY = 1
    NO_SUID = 2
    NO_DEVICES = 4
    NO_EXEC = 8
    REMOUNT = 32
    BIND = 4096
    RECURSIVE = 16384
    SLAVE = 1 << 19


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def mount(source: Path | str | None, target: Path, kind: str | None, flags: Mount, options: str = "") -> None:
    """Mount a file system, bind a directory, or change the flags of a mount."""
    texts = [os.fsencode(text) if text else None for text in (source, target, kind)]
    result = _libc().mount(*texts, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, str(target))


def unmount(target: Path) -> None:
    """Detach a mount now; it is gone when nothing uses it any more."""
    _check(_libc().umount2(os.fsencode(target), _MNT_DETACH), str(target))


def unshare(namespaces: int) -> None:
    """Give the calling thread new namespaces."""
    _check(_libc().unshare(namespaces), "unshare")


def enter_namespace(fd: int, kind: int) -> None:
    """Move the calling thread into a namespace."""
    _check(_libc().setns(fd, kind), "setns")


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own that ends with it, and with it what `work` did to the thread's namespaces."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # without an error there is a result

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # handed to the caller
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, result, None)

    # threading.Thread.start would hold the event loop until the new thread has its first turn.
    _thread.start_new_thread(run, ())
    return await done
