"""The composition root of memory: the only file that knows every part."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.durable import DurableConsumer
from caisson.common.health import Health, Progress
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.common.process import Process
from caisson.memory.adapters.fulltext import FullText
from caisson.memory.adapters.indexer import Indexer
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.candidates import PostgresCandidates
from caisson.memory.adapters.postgres.consolidating import PostgresConsolidating
from caisson.memory.adapters.postgres.correcting import PostgresCorrecting
from caisson.memory.adapters.postgres.embeddings import PostgresEmbeddings
from caisson.memory.adapters.postgres.fact_outbox import PostgresFactOutbox
from caisson.memory.adapters.postgres.forgetting import PostgresForgetting
from caisson.memory.adapters.postgres.housekeeping import PostgresHousekeeping
from caisson.memory.adapters.postgres.index_outbox import PostgresIndexOutbox
from caisson.memory.adapters.postgres.inventory import PostgresInventory
from caisson.memory.adapters.postgres.jobs import PostgresJobs
from caisson.memory.adapters.postgres.leases import PostgresLeases
from caisson.memory.adapters.postgres.reading import PostgresReading
from caisson.memory.adapters.postgres.remembering import PostgresRemembering
from caisson.memory.adapters.postgres.retrievals import PostgresRetrievals
from caisson.memory.adapters.recent_embeddings import RecentEmbeddings
from caisson.memory.domain.consolidating import Consolidator
from caisson.memory.domain.distilling import Distiller
from caisson.memory.domain.leasing import Pass, Work
from caisson.memory.domain.proposing import Proposing
from caisson.memory.domain.quotas import Holding, Quotas
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.reconciling import Reconciler
from caisson.memory.domain.searching import Searcher
from caisson.memory.engines import Engines, open_chat, open_engines
from caisson.memory.handlers.callers import utc_now
from caisson.memory.handlers.consolidating import ConsolidatingHandlers
from caisson.memory.handlers.distilling import DistillingHandlers
from caisson.memory.handlers.forgetting import ForgettingHandlers
from caisson.memory.handlers.reading import ReadingHandlers
from caisson.memory.handlers.recall import RecallHandlers
from caisson.memory.handlers.reconciling import ReconcilingHandlers
from caisson.memory.handlers.remembering import RememberingHandlers
from caisson.memory.loops.consolidating import ConsolidatePass
from caisson.memory.loops.index_state import IndexStateWatch
from caisson.memory.loops.leased import Leased
from caisson.memory.loops.relays import OutgoingFacts, OutgoingPoints, Relay
from caisson.memory.loops.upkeep import Optimizing, ReconcilePass, SweepPass
from caisson.memory.settings import IndexEngine, MemorySettings

HERE = Path(__file__).parent
QUERIES_FILE = HERE / "queries.sql"
MIGRATIONS_DIR = HERE / "migrations"
SCHEMA = "memory"
_LOOP_LIMIT_S = 20.0
_STEP_LIMIT_S = 120.0
_OPTIMIZING_S = 900.0
"""Two copies of the embedded index and, in between, a packing that is given up after ten minutes."""
_RECONCILE_S = 3_600.0
_MIB = 1 << 20

Loop = Callable[[], Awaitable[None]]


class Handlers(Protocol):
    """What answers requests."""

    def register(self, bus: Bus) -> None:
        """Serve them on `bus`."""


async def serve(settings: MemorySettings, *, reembed: bool = False) -> None:
    """Run memory until it is asked to stop; `reembed` lets another embedder take over the index.

    Raises:
        Misconfigured: the index is open in another process, or was made with another embedder.
    """
    database_url = settings.database_url.get_secret_value()
    pool = await connect_pool(database_url, application="caisson-memory", max_size=settings.database_connections)
    try:
        await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
        engines = await open_engines(settings, pool, load_queries(QUERIES_FILE), reembed=reembed)
        try:
            await Memory(settings, pool, engines).serve()
        finally:
            await engines.index.close()
    finally:
        pool.terminate()


class Memory:
    """Every part of one memory service, wired."""

    def __init__(self, settings: MemorySettings, pool: Pool, engines: Engines) -> None:
        queries = load_queries(QUERIES_FILE)
        self._settings = settings
        self._pool = pool
        self._queries = queries
        self._engines = engines
        self._process = Process()
        self._bus = Bus(settings, service="memory", on_closed=self._process.fail)
        self._index_wake, self._facts_wake = asyncio.Event(), asyncio.Event()
        self._embedder = RecentEmbeddings(engines.embedder)
        self._chat = open_chat(settings)
        self._accounts = Accounts(pool, queries, quotas=_quotas(settings), clock=utc_now)
        self._jobs = PostgresJobs(pool, queries)
        self._leases = PostgresLeases(pool, queries)
        digest = engines.embedder.identity.digest
        self._outbox = PostgresIndexOutbox(pool, queries, self._accounts, embedder=digest)
        self._indexer = Indexer(self._outbox, self._embedder, engines.index)
        self._reconciler = Reconciler(PostgresInventory(pool, queries, self._accounts), engines.index)
        self._consolidator = Consolidator(
            PostgresConsolidating(pool, queries, self._accounts, clock=utc_now),
            self._embedder,
            self._indexer,
            self._chat,
            least=settings.consolidate_episodes,
        )
        self._forgetting = ForgettingHandlers(
            PostgresForgetting(pool, queries, self._accounts, clock=utc_now),
            self._jobs,
            self._indexer,
            clock=utc_now,
            tell=self._facts_wake.set,
        )
        self._health = Health()
        self._health.add("database", self._check_database)
        self._health.add("bus", self._bus.check)
        self._health.add("index", engines.index.check)
        self._health.add("embedder", self._check_embedder)
        self._handlers = self._every_handler()
        self._loops = {**self._relays(), **self._own_loops(), **self._leased_loops()}

    async def serve(self) -> None:
        """Start everything, and stop it in the opposite order."""
        settings, process = self._settings, self._process
        if settings.index is IndexEngine.EDGE:
            await self._outbox.release_all()
            await self._jobs.release_all()
            await self._leases.release_all()
        await self._leases.hasten(Work.RECONCILE)
        for handlers in self._handlers:
            handlers.register(self._bus)
        await self._bus.start()
        for name, run in self._loops.items():
            process.spawn(name, run)
        await process.listen("admin", self._health.application(), settings.admin_host, settings.admin_port)
        process.announce(settings.admin_port_file)
        await process.run_until_stopped()
        await process.close()
        await self._bus.stop()

    def _every_handler(self) -> tuple[Handlers, ...]:
        pool, queries, engines = self._pool, self._queries, self._engines
        reading = PostgresReading(pool, queries)
        retrievals = PostgresRetrievals(pool, queries)
        fulltext = FullText(pool, queries)
        recaller = Recaller(
            searcher=Searcher(engines.embedder, engines.index, fulltext, readiness=engines.readiness),
            store=reading,
            retrievals=retrievals,
            thresholds=engines.thresholds,
        )
        remembering = RememberingHandlers(
            reading,
            PostgresRemembering(queries, self._accounts, clock=utc_now),
            PostgresCorrecting(queries, self._accounts, clock=utc_now),
            Proposing(reading, self._embedder, engines.index),
            self._indexer,
            clock=utc_now,
            tell=self._facts_wake.set,
        )
        return (
            ReadingHandlers(reading, self._accounts, clock=utc_now),
            remembering,
            self._forgetting,
            ConsolidatingHandlers(self._consolidator, clock=utc_now),
            DistillingHandlers(self._jobs, Distiller(PostgresCandidates(pool, queries), self._embedder, self._chat)),
            ReconcilingHandlers(self._reconciler, wake=self._index_wake.set),
            RecallHandlers(recaller, retrievals, clock=utc_now),
        )

    def _relays(self) -> dict[str, Loop]:
        poll_s = self._settings.relay_poll_s
        index_relay = Relay(
            OutgoingPoints(self._indexer, self._outbox),
            wake=self._index_wake,
            poll_s=poll_s,
            progress=self._progress("index relay", limit_s=_STEP_LIMIT_S),
        )
        fact_relay = Relay(
            OutgoingFacts(PostgresFactOutbox(self._pool, self._queries), self._bus),
            wake=self._facts_wake,
            poll_s=poll_s,
            progress=self._progress("fact relay"),
        )
        session_ends = DurableConsumer(
            self._bus,
            subjects.SESSION_DELETED,
            name="memory-sessions",
            work=self._forgetting.end_session,
            progress=self._progress("session ends"),
        )
        self._health.add("index backlog", index_relay.check)
        self._health.add("unsent events", fact_relay.check)
        return {"index relay": index_relay.run, "fact relay": fact_relay.run, "session ends": session_ends.run}

    def _own_loops(self) -> dict[str, Loop]:
        """What every replica does for itself."""
        engines, sweep_s = self._engines, self._settings.sweep_s
        index_state = IndexStateWatch(
            PostgresEmbeddings(self._pool, self._queries),
            engines.embedder.identity,
            engines.index,
            readiness=engines.readiness,
            poll_s=self._settings.relay_poll_s,
            progress=self._progress("index state"),
        )
        optimizing = Optimizing(
            engines.index,
            pause_s=sweep_s,
            progress=self._progress("optimizing", limit_s=_OPTIMIZING_S + sweep_s),
        )
        return {"index state": index_state.run, "optimizing": optimizing.run}

    def _leased_loops(self) -> dict[str, Loop]:
        """What one replica at a time does for all."""
        settings = self._settings
        housekeeping = PostgresHousekeeping(self._pool, self._queries, self._accounts, clock=utc_now)
        passes: dict[Work, tuple[Pass, float]] = {
            Work.SWEEP: (SweepPass(housekeeping), settings.sweep_s),
            Work.RECONCILE: (ReconcilePass(self._reconciler, wake=self._index_wake), _RECONCILE_S),
            Work.CONSOLIDATE: (ConsolidatePass(self._consolidator, clock=utc_now), settings.consolidate_s),
        }
        return {
            work: Leased(
                work, pass_, self._leases, every_s=every_s, progress=self._progress(work, limit_s=_STEP_LIMIT_S)
            ).run
            for work, (pass_, every_s) in passes.items()
        }

    def _progress(self, name: str, *, limit_s: float = _LOOP_LIMIT_S) -> Progress:
        """Return what a loop ticks, under the eyes of readiness."""
        progress = Progress(name, limit_s=limit_s)
        self._health.add(name, progress.check)
        return progress

    async def _check_embedder(self) -> None:
        self._engines.readiness.check_current()

    async def _check_database(self) -> None:
        async with self._pool.acquire(timeout=1) as connection:
            await self._queries.answers(connection)


def _quotas(settings: MemorySettings) -> Quotas:
    return Quotas(
        user=Holding(rows=settings.user_quota_rows, bytes=settings.user_quota_mib * _MIB),
        tenant=Holding(rows=settings.tenant_quota_rows, bytes=settings.tenant_quota_mib * _MIB),
    )
