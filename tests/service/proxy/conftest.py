"""One proxy for most tests, between raw sockets: a client that says what a test writes, an upstream that keeps it."""

import secrets
from collections.abc import AsyncIterator

import pytest

from caisson.common.contexts import RunContext, SealedCredentials
from caisson.stack.nats import SERVICES, EmbeddedNats
from tests.support.proxies import Gateway, ProxyProcess, a_context, sealed
from tests.support.raw_upstream import RawUpstream

TOKEN = "tok-" + secrets.token_urlsafe(24)
"""The run's own credential at `metrics`."""
KEY = "key/" + secrets.token_urlsafe(24) + "+=="
"""The deployment's credential at `keyed`."""

UPSTREAMS = """
upstreams:
  metrics:
    base_url: http://127.0.0.1:{port}
    allow:
      - {{methods: [GET, POST, HEAD], path: /v1/**}}
    tenant:
      - {{query: tenantId}}
      - {{header: X-Tenant-Id}}
      - {{path: "/v1/tenants/{{tenant}}/**"}}
    datasets:
      - {{path: "/v1/datasets/{{dataset}}/**"}}
    credential: {{bearer: {{from: run, else: tenant}}}}
  open:
    base_url: http://127.0.0.1:{port}/base
    allow:
      - {{methods: [GET, HEAD, POST, PUT, DELETE], path: /**}}
    limits: {{request_body_mib: 1024}}
  keyed:
    base_url: http://127.0.0.1:{port}
    allow:
      - {{methods: [GET, POST], path: /**}}
    credential: {{header: {{name: X-Api-Key, from: env UPSTREAM_KEY}}}}
  trusted:
    base_url: http://127.0.0.1:{port}
    allow:
      - {{methods: [GET], path: /**}}
    credential: {{header: {{name: X-Api-Key, from: env UPSTREAM_KEY}}}}
    trusted: true
  documents:
    base_url: http://127.0.0.1:{port}
    allow:
      - {{methods: [GET, POST], path: /**}}
    tenant:
      - {{json: tenant.id}}
    limits: {{json_body_kib: 64}}
  impatient:
    base_url: http://127.0.0.1:{port}
    allow:
      - {{methods: [GET, POST], path: /**}}
    limits: {{connect_s: 0.3, first_byte_s: 0.4, idle_s: 0.4, request_body_mib: 0.01}}
  nowhere:
    base_url: http://127.0.0.1:1
    allow:
      - {{methods: [GET, POST], path: /**}}
"""


@pytest.fixture(scope="session")
async def proxy_nats(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedNats]:
    """A NATS of its own: here the tests are the gateway."""
    passwords = {name: secrets.token_hex() for name in SERVICES}
    server = EmbeddedNats(tmp_path_factory.mktemp("nats"), passwords=passwords)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def gateway(proxy_nats: EmbeddedNats) -> AsyncIterator[Gateway]:
    gateway = Gateway(proxy_nats)
    await gateway.start()
    yield gateway
    await gateway.bus.stop()


@pytest.fixture(scope="session")
async def shared_upstream() -> AsyncIterator[RawUpstream]:
    upstream = RawUpstream()
    await upstream.start()
    yield upstream
    await upstream.stop()


@pytest.fixture
def upstream(shared_upstream: RawUpstream) -> RawUpstream:
    shared_upstream.reset()
    return shared_upstream


@pytest.fixture(scope="session")
async def proxy(
    proxy_nats: EmbeddedNats,
    gateway: Gateway,
    shared_upstream: RawUpstream,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[ProxyProcess]:
    upstreams = UPSTREAMS.format(port=shared_upstream.port)
    process = ProxyProcess(proxy_nats, tmp_path_factory.mktemp("proxy"), upstreams, {"UPSTREAM_KEY": KEY})
    await process.start()
    yield process
    assert await process.stop() == 0
    assert TOKEN not in process.log.read_text()
    assert KEY not in process.log.read_text()


@pytest.fixture
async def run(gateway: Gateway) -> RunContext:
    """A run of tenant acme with dataset ds-1 and a token for `metrics`."""
    credentials = SealedCredentials(run=sealed(TOKEN), tenant=sealed("tenant-token-0123456789"))
    return await gateway.put(a_context(datasets=("ds-1",), metrics=credentials))
