"""Keeping one part of the stack alive: a part that dies is started again, ever more slowly while it keeps dying."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from time import monotonic
from typing import Protocol

import structlog

from caisson.stack.children import StackError, send

_FIRST_DELAY_S = 0.25
_LONGEST_DELAY_S = 10.0
_DOUBLINGS = 6
_STEADY_AFTER_S = 30.0

log = structlog.get_logger(__name__)


class Part(Protocol):
    """A server or a service. `start` returns once it is ready and raises StackError when it cannot be."""

    @property
    def process(self) -> Process | None:
        """The process, once started."""

    @property
    def obstacle(self) -> str:
        """What stands in the way of its being ready, in its own words."""

    async def start(self) -> None:
        """Start and become ready."""

    async def stop(self) -> None:
        """End in an orderly way."""


def restart_delay_s(failures: int) -> float:
    """Return the pause before the next start after a death that `failures` short lives went before."""
    return min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(failures, _DOUBLINGS))


class Keeper:
    """Watches one part from its start to its stop."""

    def __init__(self, name: str, part: Part, *, on_restarted: Callable[[], None]) -> None:
        self.name = name
        self.part = part
        self._on_restarted = on_restarted
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    @property
    def pid(self) -> int | None:
        """The process id while the process lives."""
        process = self.part.process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def is_ready(self) -> bool:
        """Whether the part was ready when last heard of."""
        return self._ready.is_set()

    async def start(self, *, within_s: float) -> None:
        """Start the part and watch it.

        Raises:
            StackError: when it does not become ready in time.
        """
        try:
            async with asyncio.timeout(within_s):
                await self.part.start()
        except TimeoutError:
            raise StackError(f"{self.name} was not ready within {within_s} s: {self.part.obstacle}") from None
        self._ready.set()
        self._task = asyncio.create_task(self._keep(), name=f"keep-{self.name}")

    async def stop(self) -> None:
        """Stop the part, and its restarts."""
        self._ready.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.part.stop()

    async def ready(self) -> None:
        """Wait until the part is ready (again)."""
        await self._ready.wait()

    async def kill(self, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL, wait for the end. The part is then started again, without a long pause."""
        process = self.part.process
        if process is None:
            raise StackError(f"{self.name} is not running")
        self._failures = 0
        if number is signal.SIGKILL:
            self._ready.clear()
        send(process, number)
        if number is signal.SIGKILL:
            await process.wait()

    async def _keep(self) -> None:
        while (process := self.part.process) is not None:
            since = monotonic()
            code = await process.wait()
            self._ready.clear()
            if monotonic() - since > _STEADY_AFTER_S:
                self._failures = 0
            delay_s = restart_delay_s(self._failures)
            self._failures += 1
            log.warning("child.died", child=self.name, pid=process.pid, code=code, restart_in_s=delay_s)
            await asyncio.sleep(delay_s)
            await self._start_again()

    async def _start_again(self) -> None:
        try:
            await self.part.start()
        except (StackError, OSError) as error:
            log.warning("child.start_failed", child=self.name, reason=str(error))
            return
        self._ready.set()
        log.info("child.restarted", child=self.name, pid=self.pid)
        self._on_restarted()
