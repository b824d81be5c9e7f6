"""One whole plane for the stories: two runners, short leases, the example API behind the proxy."""

import json
import os
import secrets
import socket
import sys
from asyncio import create_subprocess_exec
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from caisson.stack.nats import SERVICES
from caisson.stack.stack import Stack
from tests.support.planes import Plane
from tests.support.trace_collector import Collector, collecting

ROOT = Path(__file__).parents[2]
QUICK = {
    "gateway": {"GATEWAY_LEASE_S": "2", "GATEWAY_HEARTBEAT_S": "0.4", "GATEWAY_RECONCILE_S": "0.3"},
    "runner": {"RUNNER_HEARTBEAT_S": "0.4", "RUNNER_POLL_S": "0.5"},
}


@pytest.fixture(scope="session")
async def tokens() -> dict[str, str]:
    """The example API's tokens by tenant."""
    return {tenant: f"tok-{tenant}-{secrets.token_hex(12)}" for tenant in ("acme", "globex")}


@pytest.fixture(scope="session")
async def metrics_api(tokens: dict[str, str]) -> AsyncIterator[str]:
    """URL of the running example API."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    env = os.environ | {"METRICS_TOKENS": json.dumps({token: tenant for tenant, token in tokens.items()})}
    program = str(ROOT / "examples" / "metrics_api.py")
    process = await create_subprocess_exec(sys.executable, program, "--port", str(port), env=env)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    await process.wait()


@pytest.fixture(scope="session")
async def traces() -> AsyncIterator[Collector]:
    """Where every service of the plane tells its spans."""
    async with collecting() as collector:
        yield collector


@pytest.fixture(scope="session")
async def whole_plane(
    tmp_path_factory: pytest.TempPathFactory, metrics_api: str, tokens: dict[str, str], traces: Collector
) -> AsyncIterator[Plane]:
    folder = tmp_path_factory.mktemp("plane")
    own = QUICK | {"proxy": {"METRICS_URL": metrics_api}}
    settings = {service: own.get(service, {}) | _traced(service, traces) for service in SERVICES}
    upstreams = ROOT / "config" / "upstreams.yaml"
    async with Stack(folder, runners=2, upstreams=upstreams, settings=settings) as stack, Plane(stack) as plane:
        for tenant, token in tokens.items():
            await plane.client_of(tenant).put_credential(tenant, "metrics", bearer=token)
        yield plane


@pytest.fixture
async def plane(whole_plane: Plane) -> AsyncIterator[Plane]:
    """The plane, whole before the story and whole again after it."""
    await whole_plane.stack.ready()
    yield whole_plane
    await whole_plane.stack.ready()


def _traced(service: str, traces: Collector) -> dict[str, str]:
    return {f"{service.upper()}_OTLP_ENDPOINT": traces.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
