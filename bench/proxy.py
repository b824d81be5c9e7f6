"""What the proxy costs, beside nginx (`proxy_pass`, one injected header) and mitmproxy on the same upstream.

Each proxy has core 0 for itself in turn, one worker; the upstream (nginx, a fixed answer of 52 bytes) and wrk with 16
connections share core 1. Caisson's proxy leaves nothing out: identity (by `X-Request-Id`, since wrk cannot open a
channel), tenant in query and header, a sealed credential, the search of the answer, an audit record of each request
to a real NATS. `proxy_added_ms` is the median latency at full speed less nginx's; `proxy_added_paced_ms` is that with
pauses between requests, less the same without a proxy. Values are medians of interleaved rounds.
"""

import asyncio
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Thread

import psutil
import uvloop
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from bench.figures import Figure
from caisson.common.bus import Bus
from caisson.common.contexts import Credential, RunContext, SealedCredentials, seal
from caisson.common.ids import new_id
from caisson.common.settings import ServiceSettings
from caisson.common.streams import declare
from caisson.common.subjects import CONTEXTS_STREAM
from caisson.stack.nats import SERVICES, EmbeddedNats

CONNECTIONS = 16
ROUNDS = 3
SECONDS = 3
PAUSES_MS = (1, 6)
GIB = 1 << 30
MIB = 1 << 20
PATH = "/v1/totals?from=2024-01-01&to=2024-02-01"
HOST = "127.0.0.1"

NGINX = """
worker_processes 1; daemon off; pid {folder}/{name}.pid; error_log {folder}/{name}.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
  client_body_temp_path {folder}/{name}_1; proxy_temp_path {folder}/{name}_2; fastcgi_temp_path {folder}/{name}_3;
  uwsgi_temp_path {folder}/{name}_4; scgi_temp_path {folder}/{name}_5;
  {body}
}}
"""
ANSWERS = """
server {{ listen 127.0.0.1:{port}; location / {{ default_type application/json;
  return 200 '{{"total": 42, "currency": "EUR", "items": [1, 2, 3]}}'; }} }}
"""
PASSES = """
upstream answers {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000000; }}
server {{ listen 127.0.0.1:{port}; location /metrics/ {{ proxy_pass http://answers/; proxy_http_version 1.1;
  proxy_set_header Connection ""; proxy_set_header X-Tenant-Id acme; }} }}
"""
UPSTREAMS = """
upstreams:
  metrics:
    base_url: http://127.0.0.1:{upstream}
    allow:
      - {{methods: [GET, POST], path: /v1/**}}
    tenant:
      - {{query: tenantId}}
      - {{header: X-Tenant-Id}}
      - {{path: "/v1/tenants/{{tenant}}/**"}}
    datasets:
      - {{path: "/v1/datasets/{{dataset}}/**"}}
    credential: {{bearer: {{from: run, else: tenant}}}}
  bulk:
    base_url: http://127.0.0.1:{bulk}
    allow:
      - {{methods: [POST], path: /**}}
    limits: {{request_body_mib: 2048}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What wrk saw."""

    requests_per_s: float
    median_ms: float


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as name:
        folder = Path(name)
        upstream, nginx = _free_ports(2)
        mirror = socket.create_server((HOST, 0))
        upstreams = UPSTREAMS.format(upstream=upstream, bulk=mirror.getsockname()[1])
        async with (
            _nginx(folder, "upstream", ANSWERS.format(port=upstream), core=1),
            _nginx(folder, "nginx", PASSES.format(port=nginx, upstream=upstream), core=0),
            _caisson(folder, upstreams) as caisson,
        ):
            direct, beside = f"http://{HOST}:{upstream}{PATH}", f"http://{HOST}:{nginx}/metrics{PATH}"
            figures = await _compare(direct, beside, caisson)
            figures += await _compare_mitmproxy(folder, upstream, figures)
            figures.append(await asyncio.to_thread(_carry_bulk, caisson, mirror))
    return figures


async def _compare(direct: str, beside: str, caisson: "Caisson") -> list[Figure]:
    ours = f"http://{caisson.address}/metrics{PATH}"
    await _wrk(ours, caisson, seconds=1)
    ratios, added, paced, rates = [], [], [], []
    for _ in range(ROUNDS):
        nginx, proxy = await _wrk(beside, caisson), await _wrk(ours, caisson)
        ratios.append(proxy.requests_per_s / nginx.requests_per_s)
        added.append(proxy.median_ms - nginx.median_ms)
        rates.append(proxy.requests_per_s)
        nothing, proxy = await _wrk(direct, caisson, pause=True), await _wrk(ours, caisson, pause=True)
        paced.append(proxy.median_ms - nothing.median_ms)
    return [
        Figure(name="proxy_nginx_ratio", value=median(ratios), unit="of nginx's rate", bar=0.5, wanted="at least"),
        Figure(name="proxy_added_ms", value=median(added), unit="ms over nginx, 16 connections", bar=0.3),
        Figure(name="proxy_added_paced_ms", value=median(paced), unit="ms over none, 16 connections paused"),
        Figure(name="proxy_requests_per_s", value=median(rates), unit="requests/s on one core"),
    ]


async def _compare_mitmproxy(folder: Path, upstream: int, figures: list[Figure]) -> list[Figure]:
    program = shutil.which("mitmdump", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if program is None:
        return []
    rate = next(figure.value for figure in figures if figure.name == "proxy_requests_per_s")
    (port,) = _free_ports(1)
    arguments = (
        "--quiet", "--mode", f"reverse:http://{HOST}:{upstream}", "--listen-host", HOST, "--listen-port", str(port),
        "--set", f"confdir={folder}", "--set", "keep_host_header=true", "--modify-headers", "/~q/X-Tenant-Id/acme",
    )  # fmt: skip
    async with _process((program, *arguments), core=0, port=port):
        theirs = await _wrk(f"http://{HOST}:{port}{PATH}", None)
    ratio = rate / theirs.requests_per_s
    return [Figure(name="proxy_mitmproxy_ratio", value=ratio, unit="of mitmproxy's rate", bar=20, wanted="at least")]


async def _wrk(url: str, caisson: "Caisson | None", *, seconds: int = SECONDS, pause: bool = False) -> Measured:
    headers = ("-H", f"X-Request-Id: {caisson.request_id}") if caisson else ()
    script = ("-s", str(caisson.pause_script)) if caisson and pause else ()
    process = await asyncio.create_subprocess_exec(
        *_pinned(1), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", *headers, *script, url,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    told = (await process.communicate())[0].decode()
    if process.returncode or "Non-2xx" in told or "Socket errors" in told:
        raise RuntimeError(f"wrk {url}: {told}")
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    half = re.search(r"50%\s+([\d.]+)(us|ms|s)", told)
    if rate is None or half is None:
        raise RuntimeError(told)
    return Measured(
        requests_per_s=float(rate[1]), median_ms=float(half[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[half[2]]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caisson:
    """Caisson's proxy, and a run that it knows."""

    address: str
    request_id: str
    pid: int
    pause_script: Path


@asynccontextmanager
async def _caisson(folder: Path, upstreams: str) -> AsyncIterator[Caisson]:
    key = PrivateKey.generate()
    (folder / "upstreams.yaml").write_text(upstreams)
    (folder / "pause.lua").write_text("function delay() return math.random({}, {}) end\n".format(*PAUSES_MS))
    nats = EmbeddedNats(folder / "nats", passwords={name: secrets.token_hex() for name in SERVICES})
    await nats.start()
    bus = Bus(
        ServiceSettings(nats_url=nats.url, nats_user="gateway", nats_password=nats.passwords["gateway"]),
        service="gateway",
        on_closed=lambda: None,
    )
    await bus.start()
    try:
        await declare(bus.jetstream)
        context = _context(key.public_key.encode(Base64Encoder).decode())
        subject = f"$KV.contexts.{context.request_id}"
        await bus.jetstream.publish(subject, context.model_dump_json().encode(), stream=CONTEXTS_STREAM)
        (port,) = _free_ports(1)
        environment = {
            "PROXY_NATS_URL": nats.url,
            "PROXY_NATS_PASSWORD": nats.passwords["proxy"],
            "PROXY_LISTEN_PORT": str(port),
            "PROXY_PRIVATE_KEY": key.encode(Base64Encoder).decode(),
            "PROXY_CHANNEL_KEY": secrets.token_hex(),
            "PROXY_UPSTREAMS_FILE": str(folder / "upstreams.yaml"),
            "PROXY_LOG_LEVEL": "warning",
        }
        command = (sys.executable, "-m", "caisson.proxy")
        async with _process(command, core=0, port=port, environment=environment) as process:
            yield Caisson(
                address=f"{HOST}:{port}",
                request_id=context.request_id,
                pid=process.pid,
                pause_script=folder / "pause.lua",
            )
    finally:
        await bus.stop()
        await nats.stop()


def _context(public_key: str) -> RunContext:
    credential = Credential(tenant_id="acme", upstream="metrics", kind="bearer", value=secrets.token_urlsafe(32))
    return RunContext(
        request_id=new_id("req"),
        tenant_id="acme",
        user_id="bench",
        session_id=None,
        run_id=new_id("run"),
        fence=1,
        ttl_s=3600,
        datasets=[],
        credentials={"metrics": SealedCredentials(run=seal(credential, public_key))},
    )


@asynccontextmanager
async def _nginx(folder: Path, name: str, body: str, *, core: int) -> AsyncIterator[None]:
    configuration = folder / f"{name}.conf"
    configuration.write_text(NGINX.format(folder=folder, name=name, body=body))
    port = int(re.findall(r"listen 127.0.0.1:(\d+)", body)[0])
    async with _process(("nginx", "-p", str(folder), "-c", str(configuration)), core=core, port=port):
        yield


@asynccontextmanager
async def _process(
    command: Sequence[str], *, core: int, port: int, environment: dict[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program on one core until it is no longer needed; it is there once its port answers."""
    process = await asyncio.create_subprocess_exec(*_pinned(core), *command, env=os.environ | (environment or {}))
    try:
        async with asyncio.timeout(30):
            while not _answers(port):
                if process.returncode is not None:
                    raise RuntimeError(f"{command[0]} ended with {process.returncode}")
                await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _pinned(core: int) -> tuple[str, ...]:
    """Return what pins a command to a core, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    return ("taskset", "-c", str(cores[core])) if len(cores) > 1 else ()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _free_ports(number: int) -> list[int]:
    probes = [socket.create_server((HOST, 0)) for _ in range(number)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _carry_bulk(caisson: Caisson, mirror: socket.socket) -> Figure:
    """Carry 1 GiB up and 1 GiB down; return how much the proxy's memory grew at its peak."""
    server = Thread(target=_mirror, args=(mirror,))
    server.start()
    status = Path(f"/proc/{caisson.pid}/status")
    Path(f"/proc/{caisson.pid}/clear_refs").write_text("5")
    before = psutil.Process(caisson.pid).memory_info().rss
    host, _, proxy_port = caisson.address.partition(":")
    with socket.create_connection((host, int(proxy_port))) as client:
        head = (
            f"POST /bulk/x HTTP/1.1\r\nHost: a\r\nX-Request-Id: {caisson.request_id}\r\nContent-Length: {GIB}\r\n\r\n"
        )
        client.sendall(head.encode())
        for _ in range(GIB // MIB):
            client.sendall(bytes(MIB))
        received = 0
        while received < GIB:
            received += len(client.recv(MIB))
    server.join()
    peak = int(re.findall(r"VmHWM:\s+(\d+)", status.read_text())[0]) << 10
    return Figure(name="proxy_gib_growth_mib", value=max(0, peak - before) / MIB, unit="MiB, 1 GiB each way", bar=16)


def _mirror(listener: socket.socket) -> None:
    with listener, listener.accept()[0] as connection:
        _, _, body = connection.recv(65536).partition(b"\r\n\r\n")
        received = len(body)
        while received < GIB:
            received += len(connection.recv(MIB))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % GIB)
        for _ in range(GIB // MIB):
            connection.sendall(bytes(MIB))


if __name__ == "__main__":
    print(json.dumps([figure.as_json() for figure in run()], indent=2))
