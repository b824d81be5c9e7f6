"""The whole plane on one machine: real servers, and the services as processes of their own.

Invariant: what is started is stopped: services drain first, then NATS, then PostgreSQL; and if this process is
killed, the kernel ends them all.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from caisson.stack.children import StackError, capture
from caisson.stack.data_folder import DataFolder, write_private
from caisson.stack.environment import Servers
from caisson.stack.nats import EmbeddedNats
from caisson.stack.postgres import EmbeddedPostgres
from caisson.stack.service import ServiceProcess
from caisson.stack.services import PROGRAMS, Overrides, Programs, Services
from caisson.stack.supervision import Keeper, Part

_READY_WITHIN_S = 60
_STOP_ORDER = (("runner",), ("gateway", "proxy"), ("nats",), ("postgres",))

log = structlog.get_logger(__name__)


def _nobody() -> None:
    """Nobody wants to know of changes."""


class Stack:
    """A running plane: `async with Stack(folder) as stack`. Enter it on a thread that outlives it.

    `on_change` is called after a process was restarted or added: process ids and addresses may differ.
    """

    def __init__(
        self,
        data: Path,
        *,
        runners: int = 1,
        port: int = 0,
        upstreams: Path | None = None,
        settings: Overrides | None = None,
        programs: Programs = PROGRAMS,
    ) -> None:
        """Describe a stack on the folder `data`.

        Args:
            data: everything is kept here; a stack started on it again goes on where it stopped.
            runners: how many runner processes.
            port: of the gateway's API; 0 picks a free one.
            upstreams: the YAML file of upstreams; None declares none.
            settings: environment variables by service, e.g. `{"gateway": {"GATEWAY_LEASE_S": "5"}}`.
            programs: the command of each service; for tests of the stack itself.
        """
        self.folder = DataFolder(data)
        self.platform_key = ""
        self._runners = runners
        self._port = port
        self._upstreams = upstreams
        self._overrides = settings or {}
        self._programs = programs
        self.on_change: Callable[[], None] = _nobody
        self._keepers: dict[str, list[Keeper]] = {name: [] for names in _STOP_ORDER for name in names}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start everything and wait until it is ready.

        Raises:
            StackError: naming the part that could not start, with the end of its log.
        """
        self.folder.lock()
        try:
            await self._start_servers()
            await self._start_services()
            self.platform_key = await self._ensure_platform_key()
        except BaseException:
            await self.stop()
            raise
        write_private(self.folder.client_file, {"url": self.url, "api_key": self.platform_key})

    async def stop(self) -> None:
        """Drain the services, then stop the servers."""
        for names in _STOP_ORDER:
            stops = (keeper.stop() for name in names for keeper in self._keepers[name])
            for failure in await asyncio.gather(*stops, return_exceptions=True):
                if failure is not None:
                    log.error("child.stop_failed", reason=repr(failure))
        for keepers in self._keepers.values():
            keepers.clear()
        self.folder.unlock()

    @property
    def url(self) -> str:
        """The URL of the HTTP API (of the first gateway)."""
        return self._service("gateway").addresses["http"]

    @property
    def proxy_url(self) -> str:
        """The URL that sandboxes' channels arrive at."""
        return f"http://{self._service('proxy').addresses['proxy']}"

    @property
    def metrics_urls(self) -> dict[str, str]:
        """The URL of each service process's metrics, by process name."""
        services = (keeper.part for keeper in self._all() if isinstance(keeper.part, ServiceProcess))
        return {service.name: f"{service.addresses['admin']}/metrics" for service in services}

    def pids(self, name: str) -> list[int]:
        """Return the live process ids of `postgres`, `nats`, `gateway`, `proxy` or `runner`."""
        return [keeper.pid for keeper in self._keepers[name] if keeper.pid is not None]

    def describe(self) -> dict[str, Any]:
        """Return what a program needs in order to use and to watch the stack."""
        return {
            "url": self.url,
            "platform_key": self.platform_key,
            "proxy_url": self.proxy_url,
            "metrics_urls": self.metrics_urls,
            "pids": {name: self.pids(name) for name in self._keepers},
        }

    async def ready(self, *, within_s: float = _READY_WITHIN_S) -> None:
        """Wait until every process is ready: use it after a kill.

        Raises:
            StackError: naming those that are not ready in time.
        """
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(keeper.ready() for keeper in self._all()))
        except TimeoutError:
            late = ", ".join(keeper.name for keeper in self._all() if not keeper.is_ready)
            raise StackError(f"not ready within {within_s} s: {late}") from None

    async def kill(self, name: str, index: int = 0, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one process. One that ends by it is started again, unlike after `stop_service`."""
        await self._keepers[name][index].kill(number)

    async def stop_service(self, name: str) -> None:
        """Stop every process of a service, or a server, in an orderly way, until `start_service`."""
        await asyncio.gather(*(keeper.stop() for keeper in self._keepers[name]))

    async def start_service(self, name: str) -> None:
        """Start what `stop_service` stopped, on the ports it had."""
        await _together(keeper.start(within_s=_READY_WITHIN_S) for keeper in self._keepers[name])
        self._changed()

    async def restart(self, name: str) -> None:
        """Stop and start every process of a service, or a server."""
        await self.stop_service(name)
        await self.start_service(name)

    async def wipe_nats(self) -> None:
        """Stop NATS, delete everything that it stored, and start it on the same port."""
        await self.stop_service("nats")
        await self._nats.erase()
        await self.start_service("nats")

    async def add_runner(self) -> None:
        """Start one more runner."""
        name = f"runner-{len(self._keepers['runner']) + 1}"
        await self._keep("runner", name, self._services.runner(name, proxy=self._service("proxy")))
        self._changed()

    async def add_gateway(self) -> str:
        """Start one more gateway and return its URL."""
        name = f"gateway-{len(self._keepers['gateway']) + 1}"
        gateway = self._services.gateway(name, port=0)
        await self._keep("gateway", name, gateway)
        self._changed()
        return gateway.addresses["http"]

    async def _start_servers(self) -> None:
        keyring = self.folder.keyring()
        postgres = EmbeddedPostgres(self.folder.postgres, password=keyring.postgres_password)
        self._nats = EmbeddedNats(self.folder.nats, passwords=keyring.nats_passwords)
        await _together((self._keep("postgres", "postgres", postgres), self._keep("nats", "nats", self._nats)))
        servers = Servers(database_url=postgres.url, nats_url=self._nats.url, keyring=keyring)
        self._services = Services(
            folder=self.folder, servers=servers, programs=self._programs, overrides=self._overrides
        )

    async def _start_services(self) -> None:
        gateway = self._services.gateway("gateway", port=self._port)
        proxy = self._services.proxy("proxy", upstreams=self._upstreams or self.folder.empty_upstreams())
        await _together((self._keep("gateway", "gateway", gateway), self._keep("proxy", "proxy", proxy)))
        names = [f"runner-{number}" for number in range(1, self._runners + 1)]
        await _together(self._keep("runner", name, self._services.runner(name, proxy=proxy)) for name in names)

    async def _keep(self, kind: str, name: str, part: Part) -> None:
        keeper = Keeper(name, part, on_restarted=self._changed)
        self._keepers[kind].append(keeper)
        await keeper.start(within_s=_READY_WITHIN_S)

    def _changed(self) -> None:
        self.on_change()

    async def _ensure_platform_key(self) -> str:
        file = self.folder.platform_key_file
        if not file.exists():
            argv, env = self._services.platform_key_command()
            write_private(file, (await capture(argv, env=env)).splitlines()[-1])
        return file.read_text().strip()

    def _service(self, name: str) -> ServiceProcess:
        for keeper in self._keepers[name]:
            if isinstance(keeper.part, ServiceProcess):
                return keeper.part
        raise StackError(f"the {name} has not been started")

    def _all(self) -> list[Keeper]:
        return [keeper for keepers in self._keepers.values() for keeper in keepers]


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all at once; the first failure cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
