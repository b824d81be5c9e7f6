"""A real PostgreSQL in a data folder, on a Unix socket, with fsync on.

Invariant: the socket lies in a 0700 folder of the server's account, and the server asks for a password all the same.
"""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import Process
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import asyncpg

from caisson.stack.children import StackError, end, evict, spawn, tail
from caisson.stack.lodging import PROGRAMS, SOCKET, Lodging, lodge
from caisson.stack.private_files import write_private

DATABASE = "caisson"
_SUPERUSER = "postgres"
_OWNER = "gateway"
_START_WITHIN_S = 60
_STOP_WITHIN_S = 30
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


class EmbeddedPostgres:
    """One server. `url` is for the ledger's owner, who may also create databases."""

    def __init__(self, folder: Path, *, password: str) -> None:
        self._folder = folder.resolve()
        self._password = password
        self._data = self._folder / "data"
        self._lodging: Lodging | None = None
        self._log = self._folder / "postgres.log"
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The URL of the database `caisson`, known after the first start and kept for later ones."""
        return self._url(_OWNER, DATABASE)

    @property
    def process(self) -> Process | None:
        """The postmaster, once started."""
        return self._process

    @property
    def obstacle(self) -> str:
        """The end of the server's log."""
        return tail(self._log)

    async def start(self) -> None:
        """Create the cluster if the folder has none, start the server and wait until it answers.

        Raises:
            StackError: with the end of the server's log.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._lodging is None:
            self._lodging = await asyncio.to_thread(lodge, self._folder)
        lodging = self._lodging
        lodging.move_in()
        if not self._data.exists():
            await self._initialise(lodging)
        await asyncio.to_thread(self._evict_previous, lodging)
        settings = _SETTINGS | {"unix_socket_directories": str(lodging.sockets)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = await self._run(lodging, self._data, "postgres", *flags)
        await self._answers(self._process)
        await self._create_database()

    async def stop(self) -> None:
        """Shut down fast and cleanly: open transactions are rolled back, a checkpoint is written."""
        if self._process is not None:
            await end(self._process, signal.SIGINT, within_s=_STOP_WITHIN_S)
        if self._lodging is not None:
            self._lodging.move_out()

    def _url(self, user: str, database: str) -> str:
        if self._lodging is None:
            raise StackError("PostgreSQL has not been started")
        return f"postgresql://{user}:{quote(self._password)}@/{database}?host={quote(str(self._lodging.sockets))}"

    async def _initialise(self, lodging: Lodging) -> None:
        """Make the cluster beside its place and move it there: an interrupted start leaves nothing half done."""
        fresh = self._folder / "data.partial"
        password_file = lodging.sockets.with_name("password")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        write_private(password_file, self._password)
        for path in (fresh, password_file):
            lodging.hand_over(path)
        try:
            process = await self._run(
                *(lodging, fresh, "initdb"),
                *("-U", _SUPERUSER, f"--pwfile={password_file}", "--auth=scram-sha-256", "--encoding=UTF8"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            )
            if await process.wait() != 0:
                raise StackError(f"initdb failed:\n{self.obstacle}")
        finally:
            password_file.unlink()
        fresh.rename(self._data)

    async def _run(self, lodging: Lodging, data: Path, program: str, *arguments: str) -> Process:
        seen_data = data if lodging.account is None else lodging.data
        return await spawn(
            (str(lodging.packages / PROGRAMS / program), "-D", str(seen_data), *arguments),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            log=self._log,
            before=lodging.entrance(data),
            account=lodging.account,
            on_orphaned=signal.SIGINT,
        )

    async def _answers(self, process: Process) -> None:
        deadline = monotonic() + _START_WITHIN_S
        while process.returncode is None and monotonic() < deadline:
            try:
                connection = await asyncpg.connect(self._url(_SUPERUSER, "postgres"), timeout=5)
            except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
                await asyncio.sleep(0.05)
            except asyncpg.PostgresError as error:
                await self.stop()
                raise StackError(f"PostgreSQL refuses its own stack: {error}") from error
            else:
                await connection.close()
                return
        await self.stop()
        raise StackError(f"PostgreSQL does not start:\n{self.obstacle}")

    async def _create_database(self) -> None:
        connection = await asyncpg.connect(self._url(_SUPERUSER, "postgres"))
        try:
            if not await connection.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", _OWNER):
                await connection.execute(f"CREATE ROLE {_OWNER} LOGIN CREATEDB PASSWORD '{self._password}'")
            if not await connection.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE} OWNER {_OWNER}")
        finally:
            await connection.close()

    def _evict_previous(self, lodging: Lodging) -> None:
        """End a server that a killed supervisor left behind, and drop what names a stranger as the server."""
        pid_file = self._data / "postmaster.pid"
        if pid_file.exists():
            pid = int(pid_file.read_text().split("\n", 1)[0])
            evict(pid, lodging.data, signal.SIGINT, within_s=_STOP_WITHIN_S)
            pid_file.unlink(missing_ok=True)
            (lodging.sockets / f"{SOCKET}.lock").unlink(missing_ok=True)
