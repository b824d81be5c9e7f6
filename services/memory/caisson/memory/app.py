"""The composition root of memory: the only file that knows every part."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.durable import DurableConsumer
from caisson.common.health import Health, Progress
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.common.process import Process
from caisson.memory.adapters.fulltext import FullText
from caisson.memory.adapters.indexer import Indexer
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.calibrations import PostgresCalibrations
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
from caisson.memory.domain.embedding import Standing, refuse_other_embedder, take_over
from caisson.memory.domain.gating import Thresholds, choose
from caisson.memory.domain.indexing import Embedder, Index
from caisson.memory.domain.leasing import Pass, Work
from caisson.memory.domain.quotas import Holding, Quotas
from caisson.memory.domain.recalling import Recaller
from caisson.memory.domain.reconciling import Reconciler
from caisson.memory.domain.searching import Searcher
from caisson.memory.engines import open_chat, open_embedder, open_index
from caisson.memory.handlers.callers import utc_now
from caisson.memory.handlers.consolidating import ConsolidatingHandlers
from caisson.memory.handlers.distilling import DistillingHandlers
from caisson.memory.handlers.forgetting import ForgettingHandlers
from caisson.memory.handlers.proposing import Proposing
from caisson.memory.handlers.reading import ReadingHandlers
from caisson.memory.handlers.recall import RecallHandlers
from caisson.memory.handlers.reconciling import ReconcilingHandlers
from caisson.memory.handlers.remembering import RememberingHandlers
from caisson.memory.loops.consolidating import ConsolidatePass
from caisson.memory.loops.leased import Leased
from caisson.memory.loops.making import MakingWatch
from caisson.memory.loops.relays import FactRelay, IndexRelay
from caisson.memory.loops.upkeep import Optimizing, ReconcilePass, SweepPass
from caisson.memory.settings import IndexEngine, MemorySettings

HERE = Path(__file__).parent
QUERIES_FILE = HERE / "queries.sql"
MIGRATIONS_DIR = HERE / "migrations"
SCHEMA = "memory"
_LOOP_LIMIT_S = 20.0
_STEP_LIMIT_S = 120.0
_RECONCILE_S = 3_600.0
_MIB = 1 << 20


async def serve(settings: MemorySettings, *, reembed: bool = False) -> None:
    """Run memory until it is asked to stop; `reembed` lets another embedder take over the index.

    Raises:
        Misconfigured: the index is open in another process, or was made with another embedder.
    """
    database_url = settings.database_url.get_secret_value()
    pool = await connect_pool(database_url, application="caisson-memory", max_size=settings.database_connections)
    try:
        await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
        engines = await open_engines(settings, pool, reembed=reembed)
        try:
            await Memory(settings, pool, engines).serve()
        finally:
            await engines.index.close()
    finally:
        pool.terminate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """What turns text into vectors, what finds them, from which nearness on, and whether it finds all."""

    embedder: Embedder
    index: Index
    thresholds: Thresholds
    standing: Standing


async def open_engines(settings: MemorySettings, pool: Pool, *, reembed: bool) -> Engines:
    """Open embedder and index, and hold what they were made with against each other."""
    queries = load_queries(QUERIES_FILE)
    embeddings = PostgresEmbeddings(pool, queries)
    embedder = await open_embedder(settings)
    calibrations = await PostgresCalibrations(pool, queries).all()
    thresholds = choose(calibrations, embedder=embedder.identity.digest, set_hash=settings.gate_set)
    if not reembed:
        await refuse_other_embedder(embeddings, embedder.identity)
    index = await open_index(settings, embedder.identity, rebuild=reembed)
    standing = await take_over(embeddings, embedder.identity, is_empty=await index.count() == 0)
    return Engines(embedder=embedder, index=index, thresholds=thresholds, standing=standing)


class Memory:
    """Every part of one memory service, wired."""

    def __init__(self, settings: MemorySettings, pool: Pool, engines: Engines) -> None:
        queries = load_queries(QUERIES_FILE)
        clock = utc_now
        self._settings = settings
        self._pool = pool
        self._queries = queries
        self._process = Process()
        self._bus = Bus(settings, service="memory", on_closed=self._process.fail)
        self._index_wake, self._facts_wake = asyncio.Event(), asyncio.Event()

        embedder, index = RecentEmbeddings(engines.embedder), engines.index
        accounts = Accounts(pool, queries, quotas=_quotas(settings), clock=clock)
        reading = PostgresReading(pool, queries)
        inventory = PostgresInventory(pool, queries, accounts)
        self._jobs = jobs = PostgresJobs(pool, queries)
        retrievals = PostgresRetrievals(pool, queries)
        self._outbox = PostgresIndexOutbox(pool, queries, accounts, embedder=engines.embedder.identity.digest)
        indexer = Indexer(self._outbox, embedder, index)
        chat = open_chat(settings)
        tell = self._facts_wake.set
        reconciler = Reconciler(inventory, index)
        consolidator = Consolidator(
            PostgresConsolidating(pool, queries, accounts, clock=clock),
            embedder,
            indexer,
            chat,
            least=settings.consolidate_episodes,
        )

        forgetting = ForgettingHandlers(
            PostgresForgetting(pool, queries, accounts, clock=clock), jobs, indexer, clock=clock, tell=tell
        )
        self._handlers = (
            ReadingHandlers(reading, accounts, clock=clock),
            RememberingHandlers(
                reading,
                PostgresRemembering(queries, accounts, clock=clock),
                PostgresCorrecting(queries, accounts, clock=clock),
                Proposing(reading, embedder, index),
                indexer,
                clock=clock,
                tell=tell,
            ),
            forgetting,
            ConsolidatingHandlers(consolidator, clock=clock),
            DistillingHandlers(jobs, PostgresCandidates(pool, queries), embedder, chat),
            ReconcilingHandlers(reconciler, wake=self._index_wake.set),
            RecallHandlers(
                Recaller(
                    searcher=Searcher(engines.embedder, index, FullText(pool, queries), standing=engines.standing),
                    store=reading,
                    retrievals=retrievals,
                    thresholds=engines.thresholds,
                ),
                retrievals,
                clock=clock,
            ),
        )
        progress = {name: Progress(name, limit_s=_LOOP_LIMIT_S) for name in ("index relay", "fact relay", "making")}
        progress["optimizing"] = Progress("optimizing", limit_s=_LOOP_LIMIT_S + 2 * settings.sweep_s)
        progress |= {work: Progress(work, limit_s=_STEP_LIMIT_S) for work in Work}
        progress["session ends"] = Progress("session ends", limit_s=_LOOP_LIMIT_S)
        self._session_ends = DurableConsumer(
            self._bus,
            subjects.SESSION_DELETED,
            name="memory-sessions",
            work=forgetting.end_session,
            progress=progress["session ends"],
        )
        poll_s = settings.relay_poll_s
        self._index_relay = IndexRelay(
            indexer, self._outbox, wake=self._index_wake, poll_s=poll_s, progress=progress["index relay"]
        )
        self._fact_relay = FactRelay(
            PostgresFactOutbox(pool, queries),
            self._bus,
            wake=self._facts_wake,
            poll_s=poll_s,
            progress=progress["fact relay"],
        )
        self._making = MakingWatch(
            PostgresEmbeddings(pool, queries),
            engines.embedder.identity.digest,
            index,
            standing=engines.standing,
            poll_s=poll_s,
            progress=progress["making"],
        )
        self._standing = engines.standing
        self._optimizing = Optimizing(index, pause_s=settings.sweep_s, progress=progress["optimizing"])
        self._leases = PostgresLeases(pool, queries)
        passes: dict[Work, tuple[Pass, float]] = {
            Work.SWEEP: (SweepPass(PostgresHousekeeping(pool, queries, accounts, clock=clock)), settings.sweep_s),
            Work.RECONCILE: (ReconcilePass(reconciler, wake=self._index_wake), _RECONCILE_S),
            Work.CONSOLIDATE: (ConsolidatePass(consolidator, clock=clock), settings.consolidate_s),
        }
        self._leased = {
            work: Leased(work, pass_, self._leases, every_s=every_s, progress=progress[work])
            for work, (pass_, every_s) in passes.items()
        }
        self._health = Health()
        self._health.add("database", self._check_database)
        self._health.add("bus", self._bus.check)
        self._health.add("index", index.check)
        self._health.add("embedder", self._check_embedder)
        self._health.add("index backlog", self._index_relay.check)
        self._health.add("unsent events", self._fact_relay.check)
        for name, loop_progress in progress.items():
            self._health.add(name, loop_progress.check)

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
        process.spawn("index relay", self._index_relay.run)
        process.spawn("fact relay", self._fact_relay.run)
        process.spawn("session ends", self._session_ends.run)
        process.spawn("making", self._making.run)
        process.spawn("optimizing", self._optimizing.run)
        for work, leased in self._leased.items():
            process.spawn(work, leased.run)
        await process.listen("admin", self._health.application(), settings.admin_host, settings.admin_port)
        process.announce(settings.admin_port_file)
        await process.run_until_stopped()
        await process.close()
        await self._bus.stop()

    async def _check_embedder(self) -> None:
        self._standing.check_current()

    async def _check_database(self) -> None:
        async with self._pool.acquire(timeout=1) as connection:
            await self._queries.answers(connection)


def _quotas(settings: MemorySettings) -> Quotas:
    return Quotas(
        user=Holding(rows=settings.user_quota_rows, bytes=settings.user_quota_mib * _MIB),
        tenant=Holding(rows=settings.tenant_quota_rows, bytes=settings.tenant_quota_mib * _MIB),
    )
