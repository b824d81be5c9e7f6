"""What memory costs as its callers see it: a service of its own over the bus, 100 tenants, the default embedder.

A search is embedded, found by both legs under the hard filter, checked in SQL, gated, recorded and answered. The same
without embedding runs in this process, on the same store and index. Writes go in batches of a hundred new texts, each
compared with what is stored, embedded, stored and indexed before it is answered.
"""

import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import psutil
import uvloop

from bench.figures import Figure, percentile
from bench.memory_plane import DOES, TENANTS, USERS, WHAT, WHERE, WHO, Filler, MemoryPlane, memory_plane
from caisson.common import subjects
from caisson.common.memories import Caller, NewMemory, Recalled, Remember, RememberedAll, Search
from caisson.common.postgres import load_queries
from caisson.memory.adapters.fulltext import FullText
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.postgres.reading import PostgresReading
from caisson.memory.adapters.postgres.retrievals import PostgresRetrievals
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.app import QUERIES_FILE
from caisson.memory.domain.gating import UNCALIBRATED
from caisson.memory.domain.indexing import Vector
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.searching import Searcher
from caisson.memory.handlers.recall import RecallHandlers

SIZES = ((10_000, "10k"), (100_000, "100k"))
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
                figures += await _without_embedding(plane, label)
    return figures


async def _of_service(plane: MemoryPlane, label: str) -> list[Figure]:
    service = plane.service()
    await service.start()
    try:
        asked = _questions(SEARCHES + WARM_UP)
        samples = [await _timed(plane, request) for request in asked][WARM_UP:]
        per_s = await _writes(plane, label)
        process = service.process
        resident = psutil.Process(process.pid).memory_info().rss / MIB if process else 0.0
    finally:
        await service.stop()
    return [
        Figure(name=f"memory_search_p50_ms_{label}", value=percentile(samples, 50), unit="ms"),
        Figure(name=f"memory_search_p95_ms_{label}", value=percentile(samples, 95), unit="ms", bar=10),
        Figure(name=f"memory_writes_per_s_{label}", value=per_s, unit="memories/s", bar=100, wanted="at least"),
        Figure(name=f"memory_rss_mib_{label}", value=resident, unit="MiB", bar=600),
    ]


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
        [NewMemory(text=f"{label} {_sentence(rng)} on day {batch} of week {n}") for n in range(PER_BATCH)]
        for batch in range(WRITES // PER_BATCH)
    ]
    began = perf_counter()
    for number, memories in enumerate(batches):
        request = Remember(caller=_caller(number), memories=memories)
        answer = await plane.ask(subjects.MEMORY_REMEMBER, request, RememberedAll)
        if any(result.status not in {"created", "duplicate_of"} for result in answer.results):
            raise RuntimeError(f"not what is measured: {answer}")
    return WRITES / (perf_counter() - began)


async def _without_embedding(plane: MemoryPlane, label: str) -> list[Figure]:
    """Ask the handler itself with vectors that were made before."""
    asked = _questions(SEARCHES + WARM_UP)
    known = await Known.of([request.query for request in asked])
    index = await EdgeIndex.open(plane.folder.index("memory"), MiniLm.identity)
    queries, pool = load_queries(QUERIES_FILE), plane.pool
    retrievals = PostgresRetrievals(pool, queries)
    recaller = Recaller(
        searcher=Searcher(known, index, FullText(pool, queries)),
        store=PostgresReading(pool, queries),
        retrievals=retrievals,
        thresholds=UNCALIBRATED,
    )
    handlers = RecallHandlers(recaller, retrievals, clock=lambda: datetime.now(UTC))
    samples = []
    for request in asked:
        began = perf_counter()
        await handlers.search(request)
        samples.append((perf_counter() - began) * 1_000)
    await index.close()
    return [
        Figure(name=f"memory_search_noembed_p50_ms_{label}", value=percentile(samples[WARM_UP:], 50), unit="ms"),
        Figure(
            name=f"memory_search_noembed_p95_ms_{label}", value=percentile(samples[WARM_UP:], 95), unit="ms", bar=5
        ),
    ]


class Known:
    """An embedder that has made its vectors before."""

    identity = MiniLm.identity
    window_tokens = MiniLm.window_tokens

    def __init__(self, embedder: MiniLm, vectors: dict[str, Vector]) -> None:
        self._embedder = embedder
        self._vectors = vectors

    @classmethod
    async def of(cls, texts: Sequence[str]) -> "Known":
        """Embed the texts."""
        embedder = await MiniLm.load()
        return cls(embedder, dict(zip(texts, await embedder.embed(texts), strict=True)))

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return what is known."""
        return [self._vectors[text] for text in texts]

    def chunks(self, text: str) -> list[str]:
        """Cut as the embedder does."""
        return self._embedder.chunks(text)

    def count_tokens(self, text: str) -> int:
        """Count as the embedder does."""
        return self._embedder.count_tokens(text)


def _questions(count: int) -> list[Search]:
    rng = random.Random(3)
    return [
        Search(caller=_caller(rng.randrange(TENANTS * USERS)), query=f"who {' '.join(_sentence(rng).split()[1:])}?")
        for _ in range(count)
    ]


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(words) for words in (WHO, DOES, WHAT, WHERE))


def _caller(number: int) -> Caller:
    return Caller(tenant_id=f"tenant-{number % TENANTS}", user_id=f"user-{number // TENANTS % USERS}", scopes=[])
