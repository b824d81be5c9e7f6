"""Servers that a story may take away, with one gateway on them."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from caisson.stack.postgres import EmbeddedPostgres
from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground, lay_ground, running
from tests.support.worker import Worker, connected_worker

TENANT = "acme"


@dataclass(frozen=True, kw_only=True)
class Plane:
    """The servers, the gateway, and who speaks to it."""

    postgres: EmbeddedPostgres
    ground: Ground
    gateway: ServiceProcess
    product: httpx.AsyncClient
    worker: Worker

    async def readiness(self) -> tuple[int, set[str]]:
        """Return the status of `/readyz` and the names of the checks that fail."""
        answer = await self.product.get("/readyz")
        return answer.status_code, set(answer.json().get("failing", ()))

    async def is_ready(self) -> bool:
        """Return whether every check passes."""
        return (await self.readiness())[0] == 200

    async def restore(self) -> None:
        """Start again what a story that failed has left away."""
        for part in (self.postgres, self.ground.nats, self.gateway):
            if part.process is None or part.process.returncode is not None:
                await part.start()


@asynccontextmanager
async def raised_plane(folder: Path) -> AsyncIterator[Plane]:
    """Start everything, and stop it in the opposite order."""
    postgres = EmbeddedPostgres(folder / "postgres", password=secrets.token_hex())
    await postgres.start()
    ground = await lay_ground(folder, postgres.url)
    gateway = ground.gateway()
    async with (
        running(gateway),
        ground.client(gateway, tenant=TENANT) as product,
        connected_worker(ground.nats) as worker,
    ):
        yield Plane(postgres=postgres, ground=ground, gateway=gateway, product=product, worker=worker)
    await ground.nats.stop()
    await postgres.stop()
