"""Child processes that cannot outlive the process that started them.

Invariant: a child is spawned through `setpriv --pdeathsig`, so the kernel ends it when the spawning thread is gone.
It leads its own session: a Ctrl-C in the terminal reaches only the supervisor, which then drains in order.
"""

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep

import psutil

_KILLED_WITHIN_S = 5
_POLL_S = 0.05
_LOG_LIMIT_BYTES = 16 << 20
_TAIL_BYTES = 2_000


class StackError(Exception):
    """The stack, or a part of it, cannot run; the message says why."""


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    before: Sequence[str] = (),
    account: str | None = None,
    on_orphaned: signal.Signals = signal.SIGKILL,
) -> Process:
    """Start a program with exactly `env`, its output appended to `log`, as `account` when one is named.

    `before` is a command that prepares its surroundings, as the caller, and executes what follows it.
    """
    identity = (f"--reuid={account}", f"--regid={account}", "--clear-groups") if account else ()
    _shorten(log)
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *before,
            "setpriv",
            f"--pdeathsig={on_orphaned.name.removeprefix('SIG')}",
            *identity,
            "--",
            *argv,
            env=dict(env),
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


async def capture(argv: Sequence[str], *, env: Mapping[str, str]) -> str:
    """Run a short program to its end and return what it printed.

    Raises:
        StackError: when it fails, with what it said.
    """
    guarded = ("setpriv", "--pdeathsig=KILL", "--", *argv)
    process = await asyncio.create_subprocess_exec(
        *guarded, env=dict(env), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    printed, complaint = await process.communicate()
    if process.returncode != 0 or not printed.strip():
        raise StackError(f"{' '.join(argv)} failed:\n{complaint.decode(errors='replace')[-_TAIL_BYTES:]}")
    return printed.decode().strip()


async def end(process: Process, number: signal.Signals, *, within_s: float) -> None:
    """Ask a child to end and wait; one that has not ended in time is killed."""
    send(process, number)
    try:
        await asyncio.wait_for(process.wait(), within_s)
    except TimeoutError:
        send(process, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), _KILLED_WITHIN_S)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to a child that may have ended already."""
    if process.returncode is None:
        process.send_signal(number)


def evict(pid: int, folder: Path, number: signal.Signals, *, within_s: float) -> None:
    """End a process that was started on `folder`; a stranger that got its number since is left alone. Blocks.

    Raises:
        StackError: when it does not end in time.
    """
    deadline = monotonic() + within_s
    try:
        process = psutil.Process(pid)
        if str(folder) in process.cmdline():
            process.send_signal(number)
        while str(folder) in process.cmdline():  # a zombie has none
            if monotonic() > deadline:
                raise StackError(f"process {pid} still works on {folder}")
            sleep(_POLL_S)
    except psutil.NoSuchProcess:
        return


def tail(log: Path) -> str:
    """Return the last lines of a log, for an error message."""
    return log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace") if log.exists() else ""


def _shorten(log: Path) -> None:
    """Keep one older log beside the present one."""
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
