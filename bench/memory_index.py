"""What recall costs below the service: the embedder, and the embedded index over 100 tenants under the hard filter.

Recall is held against every distance computed by hand under the same filter. `narrow` and `whole` are searches of the
one big tenant: by a user who sees 4 % of it, and by one who sees it all.
"""

import asyncio
import gc
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import uvloop
from qdrant_client import AsyncQdrantClient

from bench.figures import Figure, percentile
from bench.memory_corpus import BIG, EVERYBODY, IDENTITY, TENANTS, TOP, USERS, WORDS, Corpus, a_filter
from caisson.common.ids import TenantId
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.qdrant_server import ServerIndex
from caisson.memory.domain.indexing import Candidates, Index

SMALL, LARGE, LOCAL = 20_000, 100_000, 5_000
QUERIES, LOCAL_QUERIES = 400, 40
BATCH = 500


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    figures = await _embedder()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as name:
        folder = Path(name)
        for size, label in ((SMALL, "20k"), (LARGE, "100k")):
            corpus = Corpus(size)
            figures += await _edge(folder / label, corpus, label)
            resident, late = await _resident(folder / label), await _latest(folder / label, corpus)
            figures.append(Figure(name=f"memory_resident_{label}_mib", value=resident, unit="MiB", bar=600))
            figures.append(Figure(name=f"memory_loop_late_{label}_ms", value=late, unit="ms"))
        figures.append(await _local_mode(folder / "local"))
    return figures


async def _embedder() -> list[Figure]:
    embedder = await MiniLm.load()
    texts = [f"The customer {n} prefers tea over coffee and lives in Oslo." for n in range(64)]
    one = [await _ms(partial(embedder.embed, texts[n % 64 : n % 64 + 1])) for n in range(100)]
    many = [await _ms(lambda: embedder.embed(texts)) for _ in range(10)]
    window = await _ms(lambda: embedder.embed(embedder.chunks(" ".join(WORDS))[:8]))
    await embedder.close()
    return [
        Figure(name="memory_embed_p50_ms", value=percentile(one, 50), unit="ms"),
        Figure(name="memory_embed_p95_ms", value=percentile(one, 95), unit="ms"),
        Figure(
            name="memory_embed_per_s", value=64_000 / percentile(many, 50), unit="texts/s", bar=100, wanted="at least"
        ),
        Figure(name="memory_embed_full_window_ms", value=window / 8, unit="ms"),
    ]


async def _edge(folder: Path, corpus: Corpus, label: str) -> list[Figure]:
    index = await EdgeIndex.open(folder, IDENTITY)
    filled_s = await _fill(index, corpus)
    await index.optimize()
    mixed = await _searches(index, corpus, range(QUERIES))
    narrow = await _searches(index, corpus, range(0, 10 * QUERIES, 40))
    whole = await _searches(index, corpus, range(0, 10 * QUERIES, 40), granted=EVERYBODY)
    await index.close()
    return [
        Figure(name=f"memory_ingest_{label}_per_s", value=len(corpus.vectors) / filled_s, unit="points/s"),
        Figure(name=f"memory_search_{label}_p50_ms", value=percentile(mixed.latencies, 50), unit="ms"),
        Figure(name=f"memory_search_{label}_p95_ms", value=percentile(mixed.latencies, 95), unit="ms", bar=5),
        Figure(name=f"memory_search_{label}_whole_p95_ms", value=percentile(whole.latencies, 95), unit="ms"),
        _recall(f"memory_recall_at_10_{label}", mixed),
        _recall(f"memory_recall_at_10_{label}_narrow", narrow),
        _recall(f"memory_recall_at_10_{label}_whole", whole),
    ]


def _recall(name: str, searches: "Searches") -> Figure:
    return Figure(name=name, value=searches.recall, unit="of the true ten", bar=0.98, wanted="at least")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """Searches by both legs: their milliseconds, and the mean share of the true nearest that the dense leg has."""

    latencies: list[float]
    recall: float


async def _fill(index: Index, corpus: Corpus) -> float:
    """Write everything; return the seconds of it, without those that made the points."""
    spent = 0.0
    for begin in range(0, len(corpus.vectors), BATCH):
        points = corpus.points(begin, min(begin + BATCH, len(corpus.vectors)))
        spent += await _ms(partial(index.upsert, points)) / 1_000
    return spent


async def _searches(index: Index, corpus: Corpus, near: range, *, granted: str | None = None) -> Searches:
    asked = [(corpus.query(n), a_filter(corpus.tenants[n], f"u{n % USERS}", granted)) for n in near]
    answers: list[Candidates] = []
    latencies = []
    for query, filter_ in asked:
        began = perf_counter()
        answers.append(await index.search(query, filter_))
        latencies.append((perf_counter() - began) * 1_000)
    recalls = [_found(corpus.nearest(*question), answer) for question, answer in zip(asked, answers, strict=True)]
    return Searches(latencies=latencies, recall=sum(recalls) / len(recalls))


def _found(true: list[str], answer: Candidates) -> float:
    likeliest = sorted(answer.found, key=lambda candidate: -(candidate.cosine or -1))[:TOP]
    return len({candidate.memory_id for candidate in likeliest} & set(true)) / len(true)


async def _latest(folder: Path, corpus: Corpus) -> float:
    """Return how late the event loop woke at worst while the index was written to, searched and compacted."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            began = perf_counter()
            await asyncio.sleep(0.001)
            late.append((perf_counter() - began) * 1_000 - 1)

    index = await EdgeIndex.open(folder, IDENTITY)
    points = corpus.points(0, BATCH)
    owned: dict[TenantId, list[str]] = {}
    for n, tenant in enumerate(corpus.tenants):
        owned.setdefault(tenant, []).append(f"mem-{n}")
    gc.collect()
    watching = asyncio.create_task(watch())
    await asyncio.gather(index.upsert(points), index.search(corpus.query(0), a_filter(BIG, "u1")))
    for tenant in sorted(owned)[: TENANTS // 2]:
        await index.delete_memories(tenant, owned[tenant])
    await index.optimize()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await index.close()
    return max(late)


async def _local_mode(folder: Path) -> Figure:
    """Return how many times longer the client's own local mode takes, at a size that it can bear."""
    corpus = Corpus(LOCAL)
    edge = await EdgeIndex.open(folder, IDENTITY)
    local = await ServerIndex.open(AsyncQdrantClient(":memory:"), IDENTITY)
    medians = []
    for index in (edge, local):
        await _fill(index, corpus)
        medians.append(percentile((await _searches(index, corpus, range(LOCAL_QUERIES))).latencies, 50))
        await index.close()
    return Figure(
        name="memory_local_mode_ratio", value=medians[1] / medians[0], unit="times Edge's", bar=20, wanted="at least"
    )


async def _resident(folder: Path) -> float:
    """Return what a process takes that serves this folder with the default embedder, after some searches."""
    command = (sys.executable, "-m", "bench.memory_resident", str(folder))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    return float(told)


async def _ms(work: Callable[[], Awaitable[object]]) -> float:
    began = perf_counter()
    await work()
    return (perf_counter() - began) * 1_000
