"""The whole plane on one machine: real servers, and the services as processes of their own.

Invariant: what is started is stopped: services drain first, then NATS, then PostgreSQL; and if this process is
killed, the kernel ends them all.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from caisson.stack.children import capture
from caisson.stack.data_folder import DataFolder
from caisson.stack.environment import Servers
from caisson.stack.nats import EmbeddedNats
from caisson.stack.postgres import EmbeddedPostgres
from caisson.stack.private_files import write_private
from caisson.stack.services import PROGRAMS, Overrides, Programs, Services
from caisson.stack.supervisor import Supervisor, together

_STOP_ORDER = (("runner",), ("gateway", "proxy"), ("memory",), ("nats",), ("postgres",))


class Stack(Supervisor):
    """A running plane: `async with Stack(folder) as stack`. Enter it on a thread that outlives it.

    Its groups of processes are `postgres`, `nats`, `memory`, `gateway`, `proxy` and `runner`.
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
        super().__init__(_STOP_ORDER)
        self.folder = DataFolder(data)
        self.platform_key = ""
        self._runners = runners
        self._port = port
        self._upstreams = upstreams
        self._overrides = settings or {}
        self._programs = programs

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
        self._tell_clients()

    def _changed(self) -> None:
        if self.platform_key:
            self._tell_clients()
        super()._changed()

    def _tell_clients(self) -> None:
        """Write what the command line needs; a restarted proxy has another admin address."""
        admin = self.services("proxy")[0].addresses["admin"]
        known = {"url": self.url, "api_key": self.platform_key, "proxy_admin_url": admin}
        write_private(self.folder.client_file, known)

    async def stop(self) -> None:
        """Drain the services, then stop the servers."""
        await self.stop_all()
        self.folder.unlock()

    @property
    def url(self) -> str:
        """The URL of the HTTP API (of the first gateway)."""
        return self.services("gateway")[0].addresses["http"]

    @property
    def proxy_url(self) -> str:
        """The URL that sandboxes' channels arrive at."""
        return f"http://{self.services('proxy')[0].addresses['proxy']}"

    @property
    def metrics_urls(self) -> dict[str, str]:
        """The URL of each service process's metrics, by process name."""
        return {service.name: f"{service.addresses['admin']}/metrics" for service in self.services()}

    def describe(self) -> dict[str, Any]:
        """Return what a program needs in order to use and to watch the stack."""
        return {
            "url": self.url,
            "platform_key": self.platform_key,
            "proxy_url": self.proxy_url,
            "metrics_urls": self.metrics_urls,
            "pids": {name: self.pids(name) for names in _STOP_ORDER for name in names},
        }

    async def wipe_nats(self) -> None:
        """Stop NATS, delete everything that it stored, and start it on the same port."""
        await self.stop_service("nats")
        await self._nats.erase()
        await self.start_service("nats")

    async def add_runner(self) -> None:
        """Start one more runner."""
        name = f"runner-{len(self.services('runner')) + 1}"
        await self.keep("runner", name, self._services.runner(name, proxy=self.services("proxy")[0]))
        self.on_change()

    async def add_gateway(self) -> str:
        """Start one more gateway and return its URL."""
        name = f"gateway-{len(self.services('gateway')) + 1}"
        gateway = self._services.gateway(name, port=0)
        await self.keep("gateway", name, gateway)
        self.on_change()
        return gateway.addresses["http"]

    async def _start_servers(self) -> None:
        keyring = self.folder.keyring()
        postgres = EmbeddedPostgres(self.folder.postgres, password=keyring.postgres_password)
        self._nats = EmbeddedNats(self.folder.nats, passwords=keyring.nats_passwords)
        await together((self.keep("postgres", "postgres", postgres), self.keep("nats", "nats", self._nats)))
        servers = Servers(database_url=postgres.url, nats_url=self._nats.url, keyring=keyring)
        write_private(self.folder.secrets("memory") / "memory_database_url", postgres.url)
        self._services = Services(
            folder=self.folder, servers=servers, programs=self._programs, overrides=self._overrides
        )

    async def _start_services(self) -> None:
        gateway = self._services.gateway("gateway", port=self._port)
        proxy = self._services.proxy("proxy", upstreams=self._upstreams or self.folder.empty_upstreams())
        parts = {"gateway": gateway, "proxy": proxy, "memory": self._services.memory("memory")}
        await together(self.keep(name, name, part) for name, part in parts.items())
        names = [f"runner-{number}" for number in range(1, self._runners + 1)]
        await together(self.keep("runner", name, self._services.runner(name, proxy=proxy)) for name in names)

    async def _ensure_platform_key(self) -> str:
        file = self.folder.platform_key_file
        if not file.exists():
            argv, env = self._services.platform_key_command()
            write_private(file, (await capture(argv, env=env)).splitlines()[-1])
        return file.read_text().strip()
