"""Memory without its process: real handlers on real PostgreSQL and a real embedded index, with a clock to turn.

The embedder counts words, so that texts with common words are near and the tests need no model.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from caisson.common.errors import Unavailable
from caisson.common.ids import TenantId
from caisson.common.memories import (
    ById,
    Caller,
    MemoryView,
    NewMemory,
    PatchMemory,
    Provenance,
    Receipt,
    ReceiptOf,
    Remember,
    Remembered,
)
from caisson.common.memory_upkeep import Consolidate, ConsolidationPlan
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.common.recalls import Recalled, Search
from caisson.memory.adapters.fulltext import FullText
from caisson.memory.adapters.indexer import Indexer
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.candidates import PostgresCandidates
from caisson.memory.adapters.postgres.consolidating import PostgresConsolidating
from caisson.memory.adapters.postgres.correcting import PostgresCorrecting
from caisson.memory.adapters.postgres.forgetting import PostgresForgetting
from caisson.memory.adapters.postgres.housekeeping import PostgresHousekeeping
from caisson.memory.adapters.postgres.index_outbox import PostgresIndexOutbox
from caisson.memory.adapters.postgres.inventory import PostgresInventory
from caisson.memory.adapters.postgres.jobs import PostgresJobs
from caisson.memory.adapters.postgres.leases import PostgresLeases
from caisson.memory.adapters.postgres.reading import PostgresReading
from caisson.memory.adapters.postgres.remembering import PostgresRemembering
from caisson.memory.adapters.postgres.retrievals import PostgresRetrievals
from caisson.memory.adapters.qdrant_edge.index import ERASE_WITHIN_S, EdgeIndex
from caisson.memory.adapters.recent_embeddings import RecentEmbeddings
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.consolidating import Consolidator
from caisson.memory.domain.distillation import Chat
from caisson.memory.domain.distilling import Distiller
from caisson.memory.domain.embedding import IndexReadiness, IndexState
from caisson.memory.domain.gating import Thresholds
from caisson.memory.domain.indexing import Embedder, EmbedderIdentity, Index, Vector
from caisson.memory.domain.leasing import Lease, Work
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.proposing import Proposing
from caisson.memory.domain.quotas import Holding, Quotas
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.reconciling import Reconciler
from caisson.memory.domain.searching import Searcher
from caisson.memory.handlers.callers import filter_of
from caisson.memory.handlers.consolidating import ConsolidatingHandlers
from caisson.memory.handlers.distilling import DistillingHandlers
from caisson.memory.handlers.forgetting import ForgettingHandlers
from caisson.memory.handlers.reading import ReadingHandlers
from caisson.memory.handlers.recall import RecallHandlers
from caisson.memory.handlers.reconciling import ReconcilingHandlers
from caisson.memory.handlers.remembering import RememberingHandlers
from tests.support.gateway import create_database

DIMENSIONS = 128
GATE = Thresholds(dense=0.25, lexical=0.6)
AMPLE = Quotas(user=Holding(rows=10_000, bytes=1 << 30), tenant=Holding(rows=10_000, bytes=1 << 30))


class WordEmbedder:
    """A vector per text from the words in it. `away` makes it unavailable."""

    def __init__(self) -> None:
        self.identity = EmbedderIdentity(name="words", dimensions=DIMENSIONS, digest="w" * 64)
        self.window_tokens = 64
        self.away = False
        self.embedded: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.away:
            raise Unavailable("the embedder is away")
        self.embedded += texts
        return [vector_of(text) for text in texts]

    def at_hand(self, _: str) -> Vector | None:
        return None

    def chunks(self, text: str) -> list[str]:
        words = text.split(" ")
        return [" ".join(words[at : at + self.window_tokens]) for at in range(0, len(words), self.window_tokens)]

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def vector_of(text: str) -> list[float]:
    """The vector that `WordEmbedder` makes of a text."""
    total = np.full(DIMENSIONS, 1e-6)
    for word in re.findall(r"\w+", text.casefold()):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        total += np.random.default_rng(seed).standard_normal(DIMENSIONS)
    vector: list[float] = (total / np.linalg.norm(total)).tolist()
    return vector


class Turntable:
    """A clock that goes with real time from a moment that a test may turn."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Outage:
    """An index that can be away."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.away = False

    def __getattr__(self, name: str) -> Any:
        if self.away:
            raise Unavailable("the index is away")
        return getattr(self._index, name)


@dataclass(kw_only=True)
class Desk:
    """One tenant's memory, as the gateway would ask it. `user` asks unless another is named."""

    pool: Pool
    index: Any
    embedder: Any
    clock: Turntable
    quotas: Quotas = AMPLE
    thresholds: Thresholds = GATE
    chat: Chat | None = None
    consolidated_from: int = 5
    consolidated_together: int = 1_000
    lease_s: float = 60
    answered_within_s: float = 8
    readiness: IndexReadiness = field(default_factory=lambda: IndexReadiness(IndexState()))
    tenant: TenantId = field(default_factory=lambda: TenantId(f"tenant {uuid4().hex[:8]}"))
    user: str = "ana"

    def __post_init__(self) -> None:
        pool, clock, queries = self.pool, self.clock, load_queries(QUERIES_FILE)
        recent = RecentEmbeddings(self.embedder)
        accounts = Accounts(pool, queries, quotas=self.quotas, clock=clock)
        read = PostgresReading(pool, queries)
        retrievals = PostgresRetrievals(pool, queries)
        jobs = PostgresJobs(pool, queries)
        self.outbox = PostgresIndexOutbox(pool, queries, accounts, embedder=self.embedder.identity.digest)
        self.inventory = PostgresInventory(pool, queries, accounts)
        self.indexer = Indexer(self.outbox, recent, self.index)
        self.housekeeping = PostgresHousekeeping(pool, queries, accounts, clock=clock)
        self.reading = ReadingHandlers(read, accounts, clock=clock)
        self.remembering = RememberingHandlers(
            read,
            PostgresRemembering(queries, accounts, clock=clock),
            PostgresCorrecting(queries, accounts, clock=clock),
            Proposing(read, recent, self.index),
            self.indexer,
            clock=clock,
            tell=_nothing,
        )
        self.forgetting = ForgettingHandlers(
            PostgresForgetting(pool, queries, accounts, clock=clock), jobs, self.indexer, clock=clock, tell=_nothing
        )
        self.consolidator = Consolidator(
            PostgresConsolidating(pool, queries, accounts, clock=clock),
            recent,
            self.indexer,
            self.chat,
            least=self.consolidated_from,
            page=self.consolidated_together,
        )
        self.consolidating = ConsolidatingHandlers(self.consolidator, clock=clock)
        self.leases = PostgresLeases(pool, queries, lease_s=self.lease_s)
        self.jobs = jobs
        self.distiller = Distiller(PostgresCandidates(pool, queries), recent, self.chat)
        self.distilling = DistillingHandlers(jobs, self.distiller)
        self.reconciler = Reconciler(self.inventory, self.index)
        self.reconciling = ReconcilingHandlers(self.reconciler, wake=_nothing)
        self.recall = RecallHandlers(
            Recaller(
                searcher=Searcher(
                    self.embedder,
                    self.index,
                    FullText(pool, queries),
                    readiness=self.readiness,
                    answered_within_s=self.answered_within_s,
                ),
                store=read,
                retrievals=retrievals,
                thresholds=self.thresholds,
            ),
            retrievals,
            clock=clock,
        )

    def caller(self, user: str | None = None, *scopes: str) -> Caller:
        return Caller(tenant_id=self.tenant, user_id=user or self.user, scopes=list(scopes))

    def filter(self) -> HardFilter:
        return filter_of(self.caller(), self.clock())

    async def remember(
        self, *texts: str | NewMemory, caller: Caller | None = None, **values: Any
    ) -> list[Remembered]:
        memories = [text if isinstance(text, NewMemory) else NewMemory(text=text, **values) for text in texts]
        return (await self.remembering.remember(Remember(caller=caller or self.caller(), memories=memories))).results

    async def store(self, text: str, *, caller: Caller | None = None, **values: Any) -> str:
        """Remember one text that must be new, and return its id."""
        [result] = await self.remember(text, caller=caller, **values)
        assert result.status in {"created", "superseded"}, result
        assert result.id is not None
        return result.id

    async def episode(self, text: str, *, run: str | None = None, outcome: str = "ok", **values: Any) -> str:
        provenance = Provenance(kind="run", run_id=run or f"run_{uuid4().hex}")
        return await self.store(text, layer="episodic", outcome=outcome, provenance=provenance, **values)

    async def get(self, id_: str, *, caller: Caller | None = None, as_of: datetime | None = None) -> MemoryView:
        return await self.reading.get(ById(caller=caller or self.caller(), id=id_, as_of=as_of))

    async def correct(self, id_: str, *, caller: Caller | None = None, **changes: Any) -> MemoryView:
        return await self.remembering.correct(PatchMemory(caller=caller or self.caller(), id=id_, **changes))

    async def delete(self, id_: str, *, caller: Caller | None = None) -> Receipt:
        return await self.forgetting.delete(ById(caller=caller or self.caller(), id=id_))

    async def receipt(self, id_: str, *, caller: Caller | None = None) -> Receipt:
        return await self.forgetting.receipt(ReceiptOf(caller=caller or self.caller(), id=id_))

    async def consolidate(self, *, dry_run: bool = False, due: bool = False) -> ConsolidationPlan:
        asked = Consolidate(caller=self.caller(), dry_run=dry_run, due=due)
        return await self.consolidating.consolidate(asked)

    async def lease(self, work: Work = Work.SWEEP) -> Lease:
        """Take a lease away from whoever has it."""
        await self.pool.execute("UPDATE memory.leases SET due_at = now(), leased_until = NULL WHERE work = $1", work)
        taken = await self.leases.take(work)
        assert taken is not None
        return taken

    async def search(self, query: str, *, caller: Caller | None = None, **values: Any) -> list[str]:
        """Return the texts that a search tells, best first."""
        return [hit.memory.text for hit in (await self.recalled(query, caller=caller, **values)).hits]

    async def recalled(self, query: str, *, caller: Caller | None = None, **values: Any) -> Recalled:
        return await self.recall.search(Search(caller=caller or self.caller(), query=query, **values))

    async def indexed(self) -> set[str]:
        """Return the ids that the index holds of this tenant."""
        return {memory_id async for _, memory_id, _ in self.index.stored(self.tenant)}

    async def rows(self, sql: str, *arguments: Any) -> list[Any]:
        """Run a statement on the tenant's rows: `$1` is the tenant."""
        return await self.pool.fetch(sql, self.tenant, *arguments)


def _nothing() -> None:
    """Tell nobody."""


@asynccontextmanager
async def open_index(
    folder: Path, embedder: Embedder, *, erase_within_s: float = ERASE_WITHIN_S
) -> AsyncIterator[Outage]:
    index = await EdgeIndex.open(folder, embedder.identity, erase_within_s=erase_within_s)
    yield Outage(index)
    await index.close()


@asynccontextmanager
async def open_store(postgres_url: str) -> AsyncIterator[Pool]:
    """A migrated database of its own."""
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=24)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()
