"""The engine's process as the service keeps it: started, asked, started anew when it ended, and closed.

Invariant: nothing here waits longer than a call is allowed; while the process is away, calls fail at once.
"""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

import structlog

from caisson.common.errors import CaissonError, Unavailable
from caisson.memory.adapters.embedder_stamp import stamp
from caisson.memory.adapters.qdrant_edge.channel import Channel
from caisson.memory.adapters.qdrant_edge.lock import is_in_place, locked
from caisson.memory.adapters.qdrant_edge.metrics import RESTARTS
from caisson.memory.domain.indexing import EmbedderIdentity

_PROGRAM: Final = ("-I", "-m", "caisson.memory.adapters.qdrant_edge.program")
_ANSWERED_WITHIN_S: Final = 30.0
_ENDED_WITHIN_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0

log = structlog.get_logger(__name__)


class EdgeProcess:
    """The process over one folder, which is locked for as long as either of the two lives."""

    def __init__(self, path: Path, identity: EmbedderIdentity, *, erase_within_s: float) -> None:
        self._path = path
        self._stamp = stamp(identity)
        self._erase_within_s = erase_within_s
        self._lock = locked(path)
        self._process: Process | None = None
        self._channel: Channel | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._away = "the index is not open"

    @classmethod
    async def open(cls, path: Path, identity: EmbedderIdentity, *, rebuild: bool, erase_within_s: float) -> Self:
        """Lock the folder, start the process and open the index; raises Misconfigured."""
        process = await asyncio.to_thread(lambda: cls(path, identity, erase_within_s=erase_within_s))
        try:
            await process._start(rebuild=rebuild)
        except BaseException:
            await process.close()
            raise
        process._keeping = asyncio.create_task(process._keep(), name="embedded index")
        return process

    async def call(self, name: str, *arguments: Any, within_s: float | None = _ANSWERED_WITHIN_S) -> Any:
        """Have the engine do something; a process that does not answer in time is started anew.

        Raises:
            Unavailable: when there is no process, or the engine failed.
        """
        if self._channel is None:
            raise Unavailable(self._away)
        try:
            async with asyncio.timeout(within_s):
                return await self._channel.call(name, *arguments)
        except TimeoutError as error:
            self._kill()
            raise Unavailable(f"the embedded index did not answer in {within_s} s") from error

    async def close(self) -> None:
        """Flush, end the process, and let another have the folder. Nothing answers afterwards."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        channel, self._channel, self._away = self._channel, None, "the index is closed"
        if channel is not None:
            with suppress(Unavailable, TimeoutError):
                await asyncio.wait_for(channel.call("close"), _ENDED_WITHIN_S)
            channel.close()
        await self._ended()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _start(self, *, rebuild: bool) -> None:
        ours, theirs = socket.socketpair()
        _, channel = await asyncio.get_running_loop().create_unix_connection(Channel, sock=ours)
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, *_PROGRAM, str(theirs.fileno())),
                    pass_fds=(theirs.fileno(), self._lock),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    env={},
                    cwd="/",
                )
            await channel.call("open", self._path.resolve(), self._stamp, rebuild, self._erase_within_s)
        except BaseException:
            channel.close()
            raise
        self._channel = channel

    async def _keep(self) -> None:
        """Start the process anew whenever it ended, at growing intervals while it will not stay."""
        pause_s = _FIRST_PAUSE_S
        while True:
            if self._channel is not None:
                began = monotonic()
                await self._channel.lost.wait()
                self._channel, self._away = None, "the embedded index ended and is being started anew"
                if monotonic() - began > _LONGEST_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                log.error("embedded_index.ended", exit_code=await self._ended(), restart_in_s=pause_s)
            await self._ended()
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
            RESTARTS.inc()
            try:
                await asyncio.to_thread(self._hold)
                await self._start(rebuild=False)
            except (CaissonError, OSError) as error:
                self._away = f"the embedded index does not start: {error}"
                log.warning("embedded_index.not_started", error=str(error), again_in_s=pause_s)

    def _hold(self) -> None:
        """Lock the folder again where it was removed; raises Misconfigured where another service has it since."""
        if not is_in_place(self._path, self._lock):
            lock = locked(self._path)
            os.close(self._lock)
            self._lock = lock

    async def _ended(self) -> int | None:
        """Wait until the process is gone, and see to it; return its exit code, or minus the signal that ended it."""
        if self._process is None:
            return None
        try:
            code = await asyncio.wait_for(self._process.wait(), _ENDED_WITHIN_S)
        except TimeoutError:
            self._kill()
            code = await self._process.wait()
        self._process = None
        return code

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
