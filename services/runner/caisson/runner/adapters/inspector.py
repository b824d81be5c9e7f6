"""The guards in processes of their own: a command can kill its reader and nothing else.

Invariant: every command is read: parsed, or, where the parser dies or takes too long, as raw text; a command that
cannot be read at all does not run.
"""

import asyncio
import json
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

import structlog

from caisson.common.errors import Unavailable
from caisson.runner import metrics
from caisson.runner.domain.guards.decision import Allowed, Blocked, Decision, Trusted

_PROGRAM: Final = ("-I", "-m", "caisson.runner.inspector")
_START_WITHIN_S: Final = 20.0
_PARSE_WITHIN_S: Final = 1.0
_RAW_WITHIN_S: Final = 5.0
_BRIEF_CHARS: Final = 4096
_NO_RUN: Final = Trusted(tenant_id="-", datasets=(), environment={})
_LENGTH: Final = struct.Struct("!I")

log = structlog.get_logger(__name__)


class Inspector:
    """The domain's `Guards`: brief commands never wait behind long ones."""

    def __init__(self) -> None:
        self._brief = Reader()
        self._long = Reader()

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Self]:
        """Start both readers and end them afterwards."""
        inspector = cls()
        try:
            await asyncio.gather(inspector._brief.start(), inspector._long.start())
            yield inspector
        finally:
            await asyncio.gather(inspector._brief.stop(), inspector._long.stop())

    async def check(self) -> None:
        """Raise Unavailable unless commands can be read."""
        await self.inspect("true", _NO_RUN)

    async def inspect(self, command: str, trusted: Trusted) -> Decision:
        """Read a command.

        Raises:
            Unavailable: no reader could read it, not even as raw text.
        """
        reader = self._brief if len(command) <= _BRIEF_CHARS else self._long
        return await asyncio.shield(asyncio.ensure_future(reader.read(command, trusted)))


class Reader:
    """One reader process at a time, replaced when it dies or is too slow."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start the process and wait until it reads."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *_PROGRAM, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/"
        )
        await asyncio.wait_for(_receive(self._process), _START_WITHIN_S)

    async def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def read(self, command: str, trusted: Trusted) -> Decision:
        """Parse a command; read it as raw text when that fails."""
        async with self._turn:
            for raw, within_s in ((False, _PARSE_WITHIN_S), (True, _RAW_WITHIN_S)):
                try:
                    return await asyncio.wait_for(self._ask(command, trusted, raw=raw), within_s)
                except (TimeoutError, OSError, EOFError, ValueError) as error:
                    cause = type(error).__name__
                    metrics.GUARD_FALLBACKS.labels(cause=cause).inc()
                    log.warning("guard.reader_failed", cause=cause, raw=raw, chars=len(command))
                    await self._replace()
        raise Unavailable("the guards could not read the command")

    async def _ask(self, command: str, trusted: Trusted, *, raw: bool) -> Decision:
        if self._process is None:
            await self.start()
        process = self._process
        if process is None or process.stdin is None:
            raise EOFError
        request = {
            "command": command,
            "raw": raw,
            "tenant_id": trusted.tenant_id,
            "datasets": trusted.datasets,
            "environment": dict(trusted.environment),
            "hidden": trusted.hidden,
        }
        body = json.dumps(request).encode()
        process.stdin.write(_LENGTH.pack(len(body)) + body)
        await process.stdin.drain()
        answer = await _receive(process)
        return Blocked(**answer) if answer else Allowed()

    async def _replace(self) -> None:
        await self.stop()
        try:
            await self.start()
        except (TimeoutError, OSError, EOFError):
            log.exception("guard.reader_not_started")
            await self.stop()


async def _receive(process: Process) -> dict[str, Any]:
    if process.stdout is None:
        raise EOFError
    (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
    answer: dict[str, Any] = json.loads(await process.stdout.readexactly(length))
    return answer
