"""A real gateway as a process, on a database and a NATS server that no other gateway answers on."""

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from caisson.common.postgres import connect_pool
from caisson.gateway.keys import create_platform_key
from caisson.gateway.settings import GatewaySettings
from caisson.stack.nats import SERVICES, EmbeddedNats
from caisson.stack.service_process import ServiceProcess

QUICK = {"GATEWAY_RECONCILE_S": "0.1", "GATEWAY_RELAY_POLL_S": "0.2", "GATEWAY_LOG_LEVEL": "warning"}
_TIMEOUT_S = 30


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What gateways stand on."""

    folder: Path
    database_url: str
    nats: EmbeddedNats
    private_key: str
    public_key: str
    platform_key: str

    def environment(self, name: str = "gateway", **settings: str) -> dict[str, str]:
        """Return the environment of a gateway; `settings` are added to or replace ours."""
        return _settings(self.database_url, self.nats, self.public_key) | {
            **QUICK,
            "PATH": os.environ["PATH"],
            "GATEWAY_HTTP_PORT": "0",
            "GATEWAY_ADMIN_PORT_FILE": str(self.folder / f"{name}.ports.json"),
            **settings,
        }

    def gateway(self, name: str = "gateway", **settings: str) -> ServiceProcess:
        """Return a gateway that is not started yet; started again, it keeps its port."""

        def environment(bound: Mapping[str, str]) -> dict[str, str]:
            port = bound["http"].rsplit(":", 1)[1] if bound else "0"
            return self.environment(name, **{"GATEWAY_HTTP_PORT": port, **settings})

        return ServiceProcess(
            name,
            argv=(sys.executable, "-m", "caisson.gateway"),
            environment=environment,
            ports_file=self.folder / f"{name}.ports.json",
            log=self.folder / f"{name}.log",
            stop_within_s=10,
        )

    def client(self, gateway: ServiceProcess, *, tenant: str | None, user: str | None = "u-1") -> httpx.AsyncClient:
        """Return a product backend's client that acts for a tenant and a user, in any script."""
        return client(gateway, self.platform_key, tenant=tenant, user=user)

    def log(self, name: str = "gateway") -> str:
        """Return what a gateway has written."""
        return (self.folder / f"{name}.log").read_text()


def client(
    gateway: ServiceProcess, key: str, *, tenant: str | None = None, user: str | None = None
) -> httpx.AsyncClient:
    """Return a client with a key and the two headers."""
    named = {"Authorization": f"Bearer {key}", "Caisson-Tenant": tenant, "Caisson-User": user}
    headers = {name.encode(): value.encode() for name, value in named.items() if value is not None}
    url = gateway.addresses["http"]
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT_S, trust_env=False)


async def lay_ground(folder: Path, database_url: str) -> Ground:
    """Start NATS in `folder` and make the first platform key in an empty database."""
    nats = EmbeddedNats(folder / "nats", passwords={name: secrets.token_hex() for name in SERVICES})
    await nats.start()
    private = PrivateKey.generate()
    public_key = private.public_key.encode(Base64Encoder).decode()
    settings = {
        name.removeprefix("GATEWAY_").lower(): value
        for name, value in _settings(database_url, nats, public_key).items()
    }
    return Ground(
        folder=folder,
        database_url=database_url,
        nats=nats,
        private_key=private.encode(Base64Encoder).decode(),
        public_key=public_key,
        platform_key=await create_platform_key(GatewaySettings.model_validate(settings), "tests"),
    )


@asynccontextmanager
async def running(*gateways: ServiceProcess) -> AsyncIterator[None]:
    """Run gateways for a while."""
    try:
        for gateway in gateways:
            await gateway.start()
        yield
    finally:
        for gateway in gateways:
            await gateway.stop()


async def create_database(server_url: str) -> str:
    """Create an empty database on a server and return its URL."""
    name = f"t{secrets.token_hex(8)}"
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return server_url.replace("/caisson?", f"/{name}?")


@asynccontextmanager
async def open_ledger(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    """Open the database beside the gateway, to see facts and to move time."""
    pool = await connect_pool(database_url, application="tests", max_size=4)
    try:
        yield pool
    finally:
        await pool.close()


async def end_all_runs(ledger: asyncpg.Pool) -> None:
    """End whatever an earlier story left open, so that the next claim meets only runs of its own."""
    await ledger.execute(
        "UPDATE ledger.runs SET status = 'cancelled', finished_at = now(), lease_owner = NULL,"
        " lease_expires_at = NULL WHERE finished_at IS NULL"
    )


def _settings(database_url: str, nats: EmbeddedNats, public_key: str) -> dict[str, str]:
    return {
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_NATS_URL": nats.url,
        "GATEWAY_NATS_PASSWORD": nats.passwords["gateway"],
        "GATEWAY_PROXY_PUBLIC_KEY": public_key,
    }
