"""Searches by the memory service's own handler, in this process, with vectors that were made before."""

from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter

from bench.figures import Figure, percentile
from bench.memory_plane import MemoryPlane, questions
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

WARM_UP = 100
SEARCHES = 500


async def without_embedding(plane: MemoryPlane, label: str) -> list[Figure]:
    """Ask the handler itself with vectors that were made before."""
    asked = questions(SEARCHES + WARM_UP)
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
        Figure(name=f"memory_search_noembed_p50_ms{label}", value=percentile(samples[WARM_UP:], 50), unit="ms"),
        Figure(
            name=f"memory_search_noembed_p95_ms{label}", value=percentile(samples[WARM_UP:], 95), unit="ms", bar=5
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

    def at_hand(self, text: str) -> Vector | None:
        """Return what is known."""
        return self._vectors.get(text)

    def chunks(self, text: str) -> list[str]:
        """Cut as the embedder does."""
        return self._embedder.chunks(text)

    def count_tokens(self, text: str) -> int:
        """Count as the embedder does."""
        return self._embedder.count_tokens(text)
