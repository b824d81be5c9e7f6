"""A real memory service as a process, and the gateway's side of the bus to ask it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from caisson.common import streams, subjects
from caisson.common.bus import Bus
from caisson.common.memories import ById, Caller, NewMemory, Receipt, Remember, Remembered, RememberedAll
from caisson.common.messages import Message
from caisson.common.recalls import Recalled, Search
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import Subject
from caisson.stack.nats import EmbeddedNats
from caisson.stack.service_process import ServiceProcess

ReplyT = TypeVar("ReplyT", bound=Message)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What memory services stand on."""

    folder: Path
    database_url: str
    nats: EmbeddedNats

    def environment(self, name: str = "memory", **settings: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "MEMORY_DATABASE_URL": self.database_url,
            "MEMORY_NATS_URL": self.nats.url,
            "MEMORY_NATS_PASSWORD": self.nats.passwords["memory"],
            "MEMORY_INDEX_DIR": str(self.folder / "index"),
            "MEMORY_ADMIN_PORT_FILE": str(self.folder / f"{name}.ports.json"),
            "MEMORY_RELAY_POLL_S": "0.1",
            "MEMORY_SWEEP_S": "1",
            "MEMORY_LOG_LEVEL": "warning",
            **settings,
        }

    def service(self, name: str = "memory", *arguments: str, **settings: str) -> ServiceProcess:
        """Return a service that is not started yet."""

        def environment(_: Mapping[str, str]) -> dict[str, str]:
            return self.environment(name, **settings)

        return ServiceProcess(
            name,
            argv=(sys.executable, "-m", "caisson.memory", *arguments),
            environment=environment,
            ports_file=self.folder / f"{name}.ports.json",
            log=self.folder / f"{name}.log",
            stop_within_s=15,
        )

    async def refuse(self, *arguments: str, **settings: str) -> str:
        """Start a service that must not start; return what it says."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "caisson.memory", *arguments),
            env=self.environment("refused", **settings),
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 1
        return said.decode()


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The gateway's side of the bus."""

    bus: Bus

    async def call(self, subject: Subject, request: Message, reply: type[ReplyT]) -> ReplyT:
        return await self.bus.call(subject, request, reply, timeout_s=15)

    async def remember(self, caller: Caller, *texts: str, **values: Any) -> list[Remembered]:
        memories = [NewMemory(text=text, **values) for text in texts]
        asked = Remember(caller=caller, memories=memories)
        return (await self.call(subjects.MEMORY_REMEMBER, asked, RememberedAll)).results

    async def search(self, caller: Caller, query: str) -> list[str]:
        answer = await self.call(subjects.MEMORY_SEARCH, Search(caller=caller, query=query), Recalled)
        return [hit.memory.text for hit in answer.hits]

    async def delete(self, caller: Caller, id_: str | None) -> Receipt:
        return await self.call(subjects.MEMORY_DELETE, ById(caller=caller, id=id_ or ""), Receipt)


class _GatewaySettings(ServiceSettings):
    """The gateway's place on the bus."""


@asynccontextmanager
async def asking(nats: EmbeddedNats) -> AsyncIterator[Asking]:
    """Connect as the gateway and declare the streams."""
    settings = _GatewaySettings.model_validate(
        {"nats_url": nats.url, "nats_user": "gateway", "nats_password": nats.passwords["gateway"]}
    )
    bus = Bus(settings, service="gateway", on_closed=lambda: None)
    await bus.start()
    await streams.declare(bus.jetstream)
    yield Asking(bus=bus)
    await bus.stop()
