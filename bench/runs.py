"""What a run costs on a whole plane: latency with one client, throughput with sixteen, fairness, and being idle.

The plane is that of `caisson up` with two runners; clients and plane share the machine, and nothing is left out of a
run: HTTP, ledger, grant, room, box, result. A run is one `true`. Latency counts from sending the `POST` until the
reader of the run's events has `run.finished`.
"""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

import httpx
import psutil
import uvloop

from bench.figures import Figure, percentile
from caisson.stack.stack import Stack

WARM_UP = 20
LATENCY_RUNS = 300
CLIENTS = 16
RUNS_PER_CLIENT = 60
QUEUED = 10_000
IDLE_S = 10.0
BODY = {"steps": [{"bash": {"command": "true"}}]}
MIB = 1 << 20


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        async with Stack(Path(folder), runners=2) as stack, _client(stack, "bench") as http:
            figures = await _idle(stack)
            await _latencies(http, WARM_UP)
            latencies = await _latencies(http, LATENCY_RUNS)
            figures += [
                Figure(name="run_p50_ms", value=percentile(latencies, 50), unit="ms", bar=25),
                Figure(name="run_p99_ms", value=percentile(latencies, 99), unit="ms", bar=100),
                Figure(name="runs_per_s", value=await _throughput(http), unit="runs/s", bar=60, wanted="at least"),
                Figure(name="newcomer_start_ms", value=await _newcomer(stack), unit="ms", bar=1000),
            ]
    return figures


def _client(stack: Stack, tenant: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {stack.platform_key}", "Caisson-Tenant": tenant, "Caisson-User": "bench"}
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=stack.url, headers=headers, timeout=120, limits=limits)


async def _latencies(http: httpx.AsyncClient, count: int) -> list[float]:
    """Return `POST` to `run.finished` in ms, one run after another."""
    samples = []
    for _ in range(count):
        began = perf_counter()
        accepted = await http.post("/v1/runs", json=BODY)
        async with http.stream("GET", f"{accepted.headers['location']}/events") as events:
            async for line in events.aiter_lines():
                if line == "event: run.finished":
                    samples.append((perf_counter() - began) * 1000)
                elif line.startswith("data:") and '"status":"failed"' in line:
                    raise RuntimeError(line)
    return samples


async def _throughput(http: httpx.AsyncClient) -> float:
    """Return finished runs per second with 16 clients, each waiting for its run before the next."""

    async def client() -> None:
        for _ in range(RUNS_PER_CLIENT):
            accepted = await http.post("/v1/runs", json=BODY)
            finished = await http.get(accepted.headers["location"], params={"wait_s": 60})
            if finished.json()["status"] != "succeeded":
                raise RuntimeError(finished.text)

    began = perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return CLIENTS * RUNS_PER_CLIENT / (perf_counter() - began)


async def _newcomer(stack: Stack) -> float:
    """Return how long another tenant's single run waits for its start behind 10,000 queued ones, in ms."""
    async with _client(stack, "crowd") as crowd, _client(stack, "newcomer") as newcomer:

        async def queue(count: int) -> None:
            for _ in range(count):
                (await crowd.post("/v1/runs", json=BODY)).raise_for_status()

        await asyncio.gather(*(queue(QUEUED // CLIENTS) for _ in range(CLIENTS)))
        began = perf_counter()
        accepted = await newcomer.post("/v1/runs", json=BODY)
        async with newcomer.stream("GET", f"{accepted.headers['location']}/events") as events:
            async for line in events.aiter_lines():
                if line == "event: run.started":
                    return (perf_counter() - began) * 1000
    raise RuntimeError("the newcomer's run never started")


async def _idle(stack: Stack) -> list[Figure]:
    """Return the largest resident memory and share of a core of the services, nothing to do for ten seconds."""
    processes = {
        f"{name}_{pid}": psutil.Process(pid) for name in ("gateway", "proxy", "runner") for pid in stack.pids(name)
    }
    await asyncio.sleep(2)
    before = {name: sum(process.cpu_times()[:2]) for name, process in processes.items()}
    await asyncio.sleep(IDLE_S)
    used = {name: sum(process.cpu_times()[:2]) - before[name] for name, process in processes.items()}
    resident = {name: process.memory_info().rss / MIB for name, process in processes.items()}
    return [
        *_largest("idle_rss_{}_mib", resident, "MiB"),
        *_largest("idle_cpu_{}_percent", {name: 100 * value / IDLE_S for name, value in used.items()}, "%"),
        Figure(name="idle_rss_mib", value=max(resident.values()), unit="MiB", bar=120),
        Figure(name="idle_cpu_percent", value=max(100 * value / IDLE_S for value in used.values()), unit="%", bar=1),
    ]


def _largest(name: str, values: dict[str, float], unit: str) -> list[Figure]:
    """Return the largest value of each service."""
    services = sorted({process.partition("_")[0] for process in values})
    return [
        Figure(
            name=name.format(service),
            value=max(value for process, value in values.items() if process.startswith(service)),
            unit=unit,
        )
        for service in services
    ]
