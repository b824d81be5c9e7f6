"""One process of one service: started like in a deployment, up once it is ready for work."""

import asyncio
import json
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from caisson.stack.children import StackError, end, spawn, tail

_POLL_S = 0.05


class ServiceProcess:
    """A gateway, a runner or a proxy. `addresses` is what it bound: `admin` and, by service, `http` or `proxy`."""

    def __init__(
        self,
        name: str,
        *,
        argv: Sequence[str],
        environment: Callable[[Mapping[str, str]], Mapping[str, str]],
        ports_file: Path,
        log: Path,
        stop_within_s: float,
    ) -> None:
        self.name = name
        self.addresses: dict[str, str] = {}
        self._argv = argv
        self._environment = environment
        self._ports_file = ports_file
        self._log = log
        self._stop_within_s = stop_within_s
        self._process: Process | None = None
        self._answer = ""

    @property
    def process(self) -> Process | None:
        """The process, once started."""
        return self._process

    @property
    def obstacle(self) -> str:
        """What `/readyz` said last, and the end of the log."""
        return f"{self._answer}\n{tail(self._log)}"

    async def start(self) -> None:
        """Start the process and wait until `/readyz` says yes, however long that takes.

        Raises:
            StackError: when the process ends first, with the end of its log.
        """
        self._ports_file.unlink(missing_ok=True)
        self._process = await spawn(self._argv, env=self._environment(self.addresses), log=self._log)
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while self._process.returncode is None:
                if self._ports_file.exists() and await self._is_ready(client):
                    return
                await asyncio.sleep(_POLL_S)
        raise StackError(f"{self.name} ended with {self._process.returncode} before it was ready:\n{tail(self._log)}")

    async def stop(self) -> None:
        """Ask the process to drain, and wait for it."""
        if self._process is not None:
            await end(self._process, signal.SIGTERM, within_s=self._stop_within_s)

    async def _is_ready(self, client: httpx.AsyncClient) -> bool:
        self.addresses = json.loads(self._ports_file.read_text())
        try:
            answer = await client.get(f"{self.addresses['admin']}/readyz")
        except httpx.HTTPError as error:
            self._answer = repr(error)
            return False
        self._answer = answer.text
        return answer.is_success
