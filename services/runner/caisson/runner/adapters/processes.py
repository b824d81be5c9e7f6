"""One command's process, from its start until nothing of it is left.

Invariant: processes die with the thread that started them, are killed by their group, and are always reaped.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from caisson.runner.adapters.capture import Capture
from caisson.runner.adapters.cgroups import Cgroup
from caisson.runner.domain.accounting import KillCause, LimitEvents, Report, read_report
from caisson.runner.domain.boxes import LiveOutput

_WATCH_S: Final = 0.05
_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 0.002
_REPORT_BYTES: Final = 4096
# Python ignores these, and what is ignored stays ignored in a new program.
_DEFAULT_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a process left when it was gone."""

    report: Report
    events: LimitEvents
    killed_for: KillCause | None


class BoxProcess:
    """A started command. Its group must exist; it is removed with the command."""

    def __init__(
        self,
        arguments: Callable[[int], list[str]],
        *,
        passed: tuple[int, ...],
        cgroup: Cgroup,
        timeout_s: float,
        output_bytes: int,
        live: LiveOutput,
    ) -> None:
        """Start `arguments(fd of the report)` with nothing inherited but the descriptors `passed`.

        Raises:
            OSError: the process cannot be started.
            ValueError: an argument holds a NUL, or is no text.
        """
        self._loop = asyncio.get_running_loop()
        self._cgroup = cgroup
        self._killed_for: KillCause | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            reading, writing = zip(*(_pipe(ours, theirs) for _ in range(3)), strict=True)
            self._pidfd = _spawn(arguments(writing[2]), writing[:2], (*passed, writing[2]))
            ours.pop_all()
        self._report_fd = reading[2]
        os.set_blocking(self._report_fd, False)
        self.stdout = Capture(reading[0], "stdout", limit_bytes=output_bytes, live=live)
        self.stderr = Capture(reading[1], "stderr", limit_bytes=output_bytes, live=live)
        self._loop.add_reader(self._pidfd, self._reap)
        self._deadline = self._loop.call_later(timeout_s, self.kill, KillCause.TIME)
        self._watch = self._loop.call_later(_WATCH_S, self._look_at_limits)

    def kill(self, cause: KillCause) -> None:
        """Kill everything in the box. The first cause is remembered; after the end it does nothing."""
        if self._killed_for is not None or self._ended.done():
            return
        self._killed_for = cause
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._cgroup.kill()

    async def finish(self) -> Traces:
        """Wait until the command has ended and remove every trace of it."""
        await self._ended
        self._deadline.cancel()
        self._watch.cancel()
        report = self._read_report()
        if report.wait_status is None or self._killed_for is not None:
            await self._until(self._is_empty)
        events = self._events()
        try:
            self.stdout.finish()
            self.stderr.finish()
        finally:
            self.stdout.close()
            self.stderr.close()
            await self._until(self._cgroup.remove)
        return Traces(report=report, events=events, killed_for=self._killed_for)

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        os.close(self._pidfd)
        self._ended.set_result(None)

    def _read_report(self) -> Report:
        try:
            return read_report(os.read(self._report_fd, _REPORT_BYTES).decode(errors="replace"))
        except BlockingIOError:  # bubblewrap was killed before process 1 could tell anything
            return Report()
        finally:
            os.close(self._report_fd)

    def _look_at_limits(self) -> None:
        if self._events():
            self.kill(KillCause.LIMIT)
        else:
            self._watch = self._loop.call_later(_WATCH_S, self._look_at_limits)

    def _events(self) -> LimitEvents:
        try:
            return self._cgroup.events()
        except OSError as error:  # somebody else removed the group; the limits were in force until then
            log.warning("cgroup.unreadable", error=str(error))
            return LimitEvents()

    def _is_empty(self) -> bool:
        """Say whether no process is left; kill what is."""
        if not self._cgroup.populated():
            return True
        self._cgroup.kill()
        return False

    async def _until(self, done: Callable[[], bool]) -> None:
        deadline = self._loop.time() + _PATIENCE_S
        while not done():
            if self._loop.time() > deadline:
                log.error("cgroup.stuck", files=self._cgroup.join_files)
                return
            await asyncio.sleep(_RETRY_S)


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    ours.callback(os.close, reading)
    theirs.callback(os.close, writing)
    return reading, writing


def _spawn(arguments: list[str], outputs: tuple[int, ...], passed: tuple[int, ...]) -> int:
    """Start a process with an empty environment and return its pidfd."""
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        *((os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(outputs, start=1)),
        *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in passed),  # onto itself: it loses close-on-exec
    ]
    pid = os.posix_spawn(arguments[0], arguments, {}, file_actions=actions, setsigmask=(), setsigdef=_DEFAULT_SIGNALS)
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
