"""One gateway for all stories that need no gateway of their own. Each story has its own tenant."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

from caisson.stack.service_process import ServiceProcess
from tests.support import memory_process
from tests.support.gateway import Ground, create_database, end_all_runs, lay_ground, open_ledger, running
from tests.support.plane import Plane, raised_plane
from tests.support.worker import Worker, connected_worker


@pytest.fixture(scope="session")
async def ground(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    laid = await lay_ground(tmp_path_factory.mktemp("gateway"), await create_database(postgres_url))
    yield laid
    await laid.nats.stop()


@pytest.fixture(scope="session")
async def gateway(ground: Ground) -> AsyncIterator[ServiceProcess]:
    process = ground.gateway()
    async with running(process):
        yield process


@pytest.fixture(scope="session")
async def ledger(ground: Ground) -> AsyncIterator[asyncpg.Pool]:
    async with open_ledger(ground.database_url) as pool:
        yield pool


@pytest.fixture(scope="session")
async def connection(ground: Ground, gateway: ServiceProcess) -> AsyncIterator[Worker]:
    async with connected_worker(ground.nats) as worker:
        yield worker


@pytest.fixture
async def worker(connection: Worker, ledger: asyncpg.Pool) -> Worker:
    """A worker before which no run of an earlier story is queued."""
    await end_all_runs(ledger)
    return connection.named(f"worker-{secrets.token_hex(4)}")


@pytest.fixture
def tenant() -> str:
    return f"tenant {secrets.token_hex(4)}"


@pytest.fixture
async def product(ground: Ground, gateway: ServiceProcess, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """The product's backend, acting for this story's tenant."""
    async with ground.client(gateway, tenant=tenant) as client:
        yield client


@pytest.fixture
def plan() -> dict[str, Any]:
    return {"steps": [{"bash": {"command": "true"}}]}


@pytest.fixture(scope="session")
async def memory(ground: Ground, gateway: ServiceProcess) -> AsyncIterator[ServiceProcess]:
    """A memory service behind the gateway; a user may hold thirty memories."""
    folder = ground.folder / "memory"
    folder.mkdir()
    under = memory_process.Ground(folder=folder, database_url=ground.database_url, nats=ground.nats)
    process = under.service(MEMORY_USER_QUOTA_ROWS="30")
    await process.start()
    yield process
    await process.stop()


@pytest.fixture(scope="session")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    async with raised_plane(tmp_path_factory.mktemp("plane")) as raised:
        yield raised


@pytest.fixture
async def plane(servers: Plane) -> AsyncIterator[Plane]:
    """Servers and a gateway that a story may take away, without a run of an earlier story."""
    async with open_ledger(servers.ground.database_url) as ledger:
        await end_all_runs(ledger)
    yield servers
    await servers.restore()
