"""What recall costs below the service: the embedded index over 100 tenants under the hard filter, and the embedder.

Names without a size are of 100,000 memories, one chunk each. Latencies leave out the embedder, the store and the bus.

* `memory_recall_at_10`: the share of the ten truly nearest, by every distance computed by hand under the same filter,
  that the dense leg finds. `narrow` and `whole` ask in the one big tenant, as a user who sees 4 % of it and as one
  who sees it all. Leaves out what the gate and the store take away later.
* `memory_local_mode_ratio`: how many times longer qdrant-client's local mode takes for the same searches of the same
  memories, side by side. Leaves out that it also blocks the loop, and its writes.
* `memory_index_*`: writes in batches of 500, copying and packing what was written, and searches by both legs, in the
  packed index and before it was (`loose`).
* `memory_embed_*`: one text of ten words at a time, and 64 at once. Leaves out long texts.
"""

import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import uvloop
from qdrant_client import AsyncQdrantClient

from bench.figures import Figure, percentile
from bench.memory_corpus import EVERYBODY, IDENTITY, TOP, USERS, Corpus, a_filter
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.qdrant_server import ServerIndex
from caisson.memory.domain.indexing import Candidates, Index

SIZES = ((10_000, "_10k"), (100_000, ""))
QUERIES, LOCAL_QUERIES = 200, 4
BATCH = 500


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    figures = await _embedder()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        for size, suffix in SIZES:
            figures += await _sized(Path(folder) / str(size), Corpus(size), suffix)
    return figures


async def _embedder() -> list[Figure]:
    embedder = await MiniLm.load()
    texts = [f"The customer {n} prefers tea over coffee and lives in Oslo." for n in range(64)]
    one = [await _ms(partial(embedder.embed, texts[n % 64 : n % 64 + 1])) for n in range(100)]
    many = [await _ms(lambda: embedder.embed(texts)) for _ in range(10)]
    await embedder.close()
    per_s = 64_000 / percentile(many, 50)
    return [
        Figure(name="memory_embed_p95_ms", value=percentile(one, 95), unit="ms"),
        Figure(name="memory_embed_per_s", value=per_s, unit="texts/s", bar=100, wanted="at least"),
    ]


async def _sized(folder: Path, corpus: Corpus, suffix: str) -> list[Figure]:
    index = await EdgeIndex.open(folder, IDENTITY)
    filled_s = await _fill(index, corpus)
    loose = await _searches(index, corpus, range(QUERIES))
    packed_s = await _ms(index.optimize) / 1_000
    mixed = await _searches(index, corpus, range(QUERIES))
    narrow = await _searches(index, corpus, range(0, 10 * QUERIES, 40))
    whole = await _searches(index, corpus, range(0, 10 * QUERIES, 40), granted=EVERYBODY)
    slower = await _slower_in_local_mode(index, corpus)
    await index.close()
    return [
        _recall(f"memory_recall_at_10{suffix}", mixed),
        _recall(f"memory_recall_at_10_narrow{suffix}", narrow),
        _recall(f"memory_recall_at_10_whole{suffix}", whole),
        Figure(name=f"memory_local_mode_ratio{suffix}", value=slower, unit="x", bar=20, wanted="at least"),
        Figure(name=f"memory_index_writes_per_s{suffix}", value=len(corpus.vectors) / filled_s, unit="points/s"),
        Figure(name=f"memory_index_packing_s{suffix}", value=packed_s, unit="s"),
        Figure(name=f"memory_index_loose_search_p95_ms{suffix}", value=percentile(loose.latencies, 95), unit="ms"),
        Figure(name=f"memory_index_search_p95_ms{suffix}", value=percentile(mixed.latencies, 95), unit="ms", bar=5),
        Figure(name=f"memory_index_whole_p95_ms{suffix}", value=percentile(whole.latencies, 95), unit="ms"),
    ]


def _recall(name: str, searches: "Searches") -> Figure:
    return Figure(name=name, value=searches.recall, unit="", bar=0.98, wanted="at least")


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


async def _searches(index: Index, corpus: Corpus, near: Iterable[int], *, granted: str | None = None) -> Searches:
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


async def _slower_in_local_mode(index: EdgeIndex, corpus: Corpus) -> float:
    """Return the quotient of the medians, over the same memories in turn."""
    local = await ServerIndex.open(AsyncQdrantClient(":memory:"), IDENTITY)
    await _fill(local, corpus)
    edge_ms: list[float] = []
    local_ms: list[float] = []
    for n in range(LOCAL_QUERIES):
        local_ms += (await _searches(local, corpus, [n])).latencies
        edge_ms += (await _searches(index, corpus, [n] * 3)).latencies
    await local.close()
    return percentile(local_ms, 50) / percentile(edge_ms, 50)


async def _ms(work: Callable[[], Awaitable[object]]) -> float:
    began = perf_counter()
    await work()
    return (perf_counter() - began) * 1_000
