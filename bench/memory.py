"""What memory costs as its callers see it: a service of its own over the bus, 100 tenants, the default embedder.

Names without a size are of 100,000 memories. All is one sentence long, and nobody else uses the machine's two cores.

* `memory_search`: one caller at a time, over the bus: embedded, found by both legs under the hard filter, checked in
  SQL, gated, recorded, answered. Leaves out the gateway, and long or repeated queries.
* `memory_search_noembed`: the same handler in this process with vectors made before. Leaves out bus and embedder.
* `memory_writes`: new texts in batches of a hundred, each compared with what is stored, embedded, stored and indexed
  before it is answered. Leaves out long texts and writers at once.
* `memory_rss`: what the service and the process of its index hold resident after all that; a page that both map is
  counted once, one shared with others in part (PSS). Leaves out PostgreSQL and NATS.
* `memory_loop_blocked_max`: the latest that the service's event loop woke while callers searched, wrote and deleted
  and the index was compacted, by the service's own metric. Leaves out long texts.
"""

import random
import tempfile
from pathlib import Path
from time import perf_counter

import psutil
import uvloop

from bench.figures import Figure, percentile
from bench.memory_blocking import blocked
from bench.memory_noembed import without_embedding
from bench.memory_plane import Filler, MemoryPlane, caller, memory_plane, questions, sentence
from caisson.common import subjects
from caisson.common.memories import NewMemory, Remember, RememberedAll
from caisson.common.recalls import Recalled, Search
from caisson.stack.service_process import ServiceProcess

SIZES = ((10_000, "_10k"), (100_000, ""))
WARM_UP = 100
SEARCHES = 500
WRITES = 2_000
PER_BATCH = 100
MIB = 1 << 20


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        async with memory_plane(Path(folder)) as plane:
            filler, filled = Filler(plane), 0
            for size, label in SIZES:
                await filler.fill(filled, size)
                filled = size
                figures += await _of_service(plane, label)
                figures += await without_embedding(plane, label)
            figures.append(await blocked(plane))
    return figures


async def _of_service(plane: MemoryPlane, label: str) -> list[Figure]:
    service = plane.service()
    await service.start()
    try:
        asked = questions(SEARCHES + WARM_UP)
        samples = [await _timed(plane, request) for request in asked][WARM_UP:]
        per_s = await _writes(plane, label)
        resident = _resident_mib(service)
    finally:
        await service.stop()
    return [
        Figure(name=f"memory_search_p50_ms{label}", value=percentile(samples, 50), unit="ms"),
        Figure(name=f"memory_search_p95_ms{label}", value=percentile(samples, 95), unit="ms", bar=10),
        Figure(name=f"memory_writes_per_s{label}", value=per_s, unit="memories/s", bar=100, wanted="at least"),
        Figure(name=f"memory_rss_mib{label}", value=resident, unit="MiB", bar=600),
    ]


def _resident_mib(service: ServiceProcess) -> float:
    if service.process is None:
        return 0.0
    process = psutil.Process(service.process.pid)
    return sum(one.memory_full_info().pss for one in (process, *process.children(recursive=True))) / MIB


async def _timed(plane: MemoryPlane, request: Search) -> float:
    began = perf_counter()
    recalled = await plane.ask(subjects.MEMORY_SEARCH, request, Recalled)
    spent = (perf_counter() - began) * 1_000
    if not recalled.hits or recalled.diagnostics.degraded:
        raise RuntimeError(f"not what is measured: {recalled.diagnostics}")
    return spent


async def _writes(plane: MemoryPlane, label: str) -> float:
    rng = random.Random(label)
    batches = [
        [NewMemory(text=f"{label} {sentence(rng)} on day {batch} of week {n}") for n in range(PER_BATCH)]
        for batch in range(WRITES // PER_BATCH)
    ]
    began = perf_counter()
    for number, memories in enumerate(batches):
        request = Remember(caller=caller(number), memories=memories)
        answer = await plane.ask(subjects.MEMORY_REMEMBER, request, RememberedAll)
        if any(result.status not in {"created", "duplicate_of"} for result in answer.results):
            raise RuntimeError(f"not what is measured: {answer}")
    return WRITES / (perf_counter() - began)
