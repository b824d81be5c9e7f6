"""A gateway and a memory service as processes on servers of their own, and whoever asks them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx

from caisson.stack.service_process import ServiceProcess
from tests.support import memory_process
from tests.support.gateway import Ground, client, create_database, lay_ground, open_ledger, running
from tests.support.memory_process import Asking, asking


@dataclass(frozen=True, kw_only=True)
class MemoryPlane:
    """`store` is the database beside the services, to see rows and to move time; `bus` asks as the gateway does."""

    ground: Ground
    gateway: ServiceProcess
    memory: ServiceProcess
    store: asyncpg.Pool
    bus: Asking

    def asker(
        self, tenant: str, user: str = "ana", *, scopes: str | None = None, key: str | None = None
    ) -> httpx.AsyncClient:
        """Return a client that acts for a tenant's user; with the platform key unless another is given."""
        named = None if key else tenant
        asking_ = client(self.gateway, key or self.ground.platform_key, tenant=named, user=user)
        if scopes is not None:
            asking_.headers["Caisson-Scopes"] = scopes
        return asking_

    async def key_of(self, tenant: str) -> str:
        """Return a new key of a tenant."""
        async with self.asker(tenant) as product:
            made = await product.post("/v1/keys", json={"name": "app", "tenant_id": tenant})
        return str(made.json()["key"])


def new_tenant(name: str = "tenant") -> str:
    """Return a tenant that no other case has."""
    return f"{name}-{uuid4().hex[:8]}"


async def remember(product: httpx.AsyncClient, text: str, **fields: Any) -> str:
    """Remember one text that must be new, and return its id."""
    answer = await product.post("/v1/memories", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def search(product: httpx.AsyncClient, query: str, **fields: Any) -> list[str]:
    """Return the texts that a search tells, best first."""
    answer = await product.post("/v1/memories/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return [hit["memory"]["text"] for hit in answer.json()["hits"]]


@asynccontextmanager
async def raised_memory_plane(folder: Path, postgres_url: str, **settings: str) -> AsyncIterator[MemoryPlane]:
    """Start both services; no sweep runs unless `settings` of the memory service say so."""
    ground = await lay_ground(folder, await create_database(postgres_url))
    gateway = ground.gateway()
    beside = folder / "memory"
    beside.mkdir()
    under = memory_process.Ground(folder=beside, database_url=ground.database_url, nats=ground.nats)
    memory = under.service(**{"MEMORY_SWEEP_S": "3600", **settings})
    try:
        async with (
            running(gateway, memory),
            open_ledger(ground.database_url) as store,
            asking(ground.nats) as bus,
        ):
            yield MemoryPlane(ground=ground, gateway=gateway, memory=memory, store=store, bus=bus)
    finally:
        await ground.nats.stop()
