"""A service's process: signals, its HTTP servers, its background loops, and a watchdog over the event loop.

Invariant: a loop that crashes, or an event loop that stands still, ends the process; nothing half-works in silence.
"""

import asyncio
import faulthandler
import gc
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import structlog
import uvicorn
from starlette.types import ASGIApp

from caisson.common.lag import measure_lag

_FROZEN_LIMIT_S = 30
_TICK_S = 1.0

log = structlog.get_logger(__name__)


class Process:
    """What runs until a signal, a crash of one of its parts, or `stop`."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []
        self.addresses: dict[str, str] = {}

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the process has been asked to end."""
        return self._stopping

    def stop(self) -> None:
        """Ask the process to end."""
        self._stopping.set()

    def fail(self) -> None:
        """End the process as failed: the supervisor starts it again."""
        self._failure = self._failure or RuntimeError("a vital connection closed")
        self._stopping.set()

    def spawn(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a background loop; its crash ends the process."""

        async def guarded() -> None:
            try:
                await loop()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                log.exception("loop.crashed", loop=name)
                self._failure = error
                self._stopping.set()

        task = asyncio.create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def listen(self, name: str, application: ASGIApp, host: str, port: int) -> None:
        """Serve an ASGI application; port 0 picks a free one. `addresses[name]` becomes its URL."""
        listener = socket.create_server((host, port), backlog=1024)
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
            timeout_keep_alive=75,
            server_header=False,
        )
        server = _QuietServer(config)
        self._servers.append((server, asyncio.create_task(server.serve(sockets=[listener]), name=f"http-{name}")))
        bound_host, bound_port = listener.getsockname()[:2]
        self.addresses[name] = f"http://{bound_host}:{bound_port}"

    def announce(self, file: Path | None) -> None:
        """Log the bound addresses and write them, as JSON, to `file` in one step."""
        log.info("service.ready", **self.addresses)
        if file is not None:
            partial = file.with_suffix(".partial")
            partial.write_text(json.dumps(self.addresses))
            partial.replace(file)

    async def run_until_stopped(self) -> None:
        """Wait for a signal or a failure, feeding the watchdog."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        _settle_memory()
        self.spawn("watchdog", self._watch)
        self.spawn("lag", measure_lag)
        await self._stopping.wait()

    async def close(self) -> None:
        """Stop the servers and the loops; raise what made the process fail."""
        for server, _ in self._servers:
            server.should_exit = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *(task for _, task in self._servers), return_exceptions=True)
        faulthandler.cancel_dump_traceback_later()
        if self._failure is not None:
            raise SystemExit(1) from self._failure

    async def _watch(self) -> None:
        while True:
            faulthandler.dump_traceback_later(_FROZEN_LIMIT_S, exit=True)
            await asyncio.sleep(_TICK_S)


def _settle_memory() -> None:
    """Leave what was loaded out of later garbage collections: each full one would keep the event loop for 40 ms."""
    gc.collect()
    gc.freeze()


class _QuietServer(uvicorn.Server):
    """A server that leaves the signals to the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield
