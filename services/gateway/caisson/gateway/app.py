"""The composition root of the gateway: the only file that knows every part."""

import asyncio
from functools import partial
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from caisson.common.bus import Bus
from caisson.common.contexts import Credential, seal
from caisson.common.errors import CaissonError, Misconfigured, NotFound, Unavailable
from caisson.common.health import Health, Progress
from caisson.common.postgres import Pool, acquire, connect_pool, load_queries, migrate
from caisson.common.process import Process
from caisson.common.streams import declare
from caisson.gateway.adapters.contexts import NatsContexts
from caisson.gateway.adapters.event_copies import NatsCopies
from caisson.gateway.adapters.postgres.deletions import PostgresDeletions
from caisson.gateway.adapters.postgres.idempotency import PostgresIdempotency
from caisson.gateway.adapters.postgres.leases import PostgresLeases
from caisson.gateway.adapters.postgres.notifications import Notifications
from caisson.gateway.adapters.postgres.outbox import PostgresOutbox
from caisson.gateway.adapters.postgres.runs import PostgresRuns
from caisson.gateway.adapters.postgres.security import PostgresSecurityLog
from caisson.gateway.adapters.postgres.sessions import PostgresSessions
from caisson.gateway.adapters.postgres.tenancy import PostgresKeys, PostgresTenants
from caisson.gateway.api import (
    events,
    execs,
    keys,
    memories,
    memory_users,
    problems,
    recalls,
    runs,
    security,
    sessions,
    tenants,
)
from caisson.gateway.api.bodies import Edge
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.cancels import Cancels
from caisson.gateway.api.documents import documented_api
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.memory_calls import MemoryCalls
from caisson.gateway.api.submissions import Submissions
from caisson.gateway.api.traced import Traced
from caisson.gateway.api.waiting import Waiting
from caisson.gateway.domain.deleting import Deleting
from caisson.gateway.handlers import LedgerHandlers
from caisson.gateway.loops import Deleter, Housekeeper, Reconciler, Relay
from caisson.gateway.settings import GatewaySettings

HERE = Path(__file__).parent
QUERIES_FILE = HERE / "queries.sql"
MIGRATIONS_DIR = HERE / "migrations"
SCHEMA = "ledger"
MIN_HEARTBEATS = 3
_LOOP_LIMIT_S = 20.0


async def serve(settings: GatewaySettings) -> None:
    """Run the gateway until it is asked to stop."""
    if settings.heartbeat_s * MIN_HEARTBEATS > settings.lease_s:
        raise Misconfigured(
            f"GATEWAY_LEASE_S ({settings.lease_s}) must cover {MIN_HEARTBEATS} times GATEWAY_HEARTBEAT_S"
        )
    database_url = settings.database_url.get_secret_value()
    pool = await connect_pool(database_url, application="caisson-gateway", max_size=settings.database_connections)
    try:
        await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
        await Gateway(settings, pool).serve()
    finally:
        pool.terminate()


class Gateway:
    """Every part of one gateway, wired."""

    def __init__(self, settings: GatewaySettings, pool: Pool) -> None:
        queries = load_queries(QUERIES_FILE)
        self._settings = settings
        self._pool = pool
        self._queries = queries
        self._process = Process()
        self._bus = Bus(settings, service="gateway", on_closed=self._process.fail)
        self._contexts = NatsContexts(self._bus)
        self._leases = PostgresLeases(pool, queries, lease_s=settings.lease_s)
        self._security_log = PostgresSecurityLog(pool, queries)
        self._idempotency = PostgresIdempotency(pool, queries, ttl_s=settings.idempotency_ttl_s)

        self._runs = PostgresRuns(pool, queries)
        self._cancels = Cancels(self._runs, self._leases, self._contexts, self._bus)

        names = ("listener", "relay", "reconciler", "deleter")
        progress = {name: Progress(name, limit_s=_LOOP_LIMIT_S) for name in names}
        outbox = PostgresOutbox(pool, queries)
        self._notifications = Notifications(settings.database_url.get_secret_value(), progress["listener"])
        self._relay = Relay(
            outbox,
            self._bus,
            declare_streams=lambda: declare(self._bus.jetstream),
            news=self._notifications.outbox,
            poll_s=settings.relay_poll_s,
            progress=progress["relay"],
        )
        self._reconciler = Reconciler(
            self._leases, self._contexts, outbox, pause_s=settings.reconcile_s, progress=progress["reconciler"]
        )
        gone = problems.stored(NotFound("what this key was for has been deleted"))
        self._deletions = asyncio.Event()
        self._deleting = Deleting(
            PostgresDeletions(pool, queries, gone=gone),
            NatsCopies(self._bus),
            partial(self._cancels.cancel, reason="the session was deleted"),
        )
        self._deleter = Deleter(
            self._deleting, wake=self._deletions, pause_s=settings.reconcile_s, progress=progress["deleter"]
        )
        self._health = Health()
        self._health.add("database", self._check_database)
        self._health.add("bus", self._bus.check)
        self._health.add("outbox", self._reconciler.check_outbox)
        for name, loop_progress in progress.items():
            self._health.add(name, loop_progress.check)

    async def serve(self) -> None:
        """Start everything, and stop it in the opposite order."""
        settings, process = self._settings, self._process
        LedgerHandlers(
            self._leases,
            self._contexts,
            self._security_log,
            claim_changes=lambda: self._notifications.claim_changes,
        ).register(self._bus)
        await self._bus.start()
        await declare(self._bus.jetstream)
        process.spawn("listener", self._notifications.listen)
        process.spawn("relay", self._relay.run)
        process.spawn("reconciler", self._reconciler.run)
        process.spawn("deleter", self._deleter.run)
        process.spawn("housekeeper", Housekeeper(self._idempotency).run)
        await process.listen("http", self._application(), settings.http_host, settings.http_port)
        await process.listen("admin", self._health.application(), settings.admin_host, settings.admin_port)
        process.announce(settings.admin_port_file)
        await process.run_until_stopped()
        await process.close()
        await self._bus.stop()

    def _application(self) -> FastAPI:
        pool, queries, stopping = self._pool, self._queries, self._process.stopping
        sealer = partial(_seal, public_key=self._settings.proxy_public_key)
        run_store = self._runs
        session_store = PostgresSessions(pool, queries)
        key_store = PostgresKeys(pool, queries)
        tenant_store = PostgresTenants(pool, queries)
        callers = Callers(key_store, tenant_store)
        idempotency = Idempotency(self._idempotency)
        submissions = Submissions(callers, run_store, session_store, sealer)
        waiting = Waiting(run_store, self._notifications, stopping)
        memory = MemoryCalls(callers, self._bus)

        application = _bare_application(self._health)
        for router in (
            runs.routes(callers, run_store, submissions, waiting, self._cancels, idempotency),
            execs.routes(callers, submissions, waiting, idempotency),
            events.routes(callers, run_store, self._notifications, self._bus, stopping),
            sessions.routes(callers, session_store, idempotency, self._deleting, wake=self._deletions.set),
            tenants.routes(callers, tenant_store, self._leases, self._contexts, sealer),
            keys.routes(callers, key_store, idempotency),
            security.routes(callers, self._security_log),
            memories.routes(memory, idempotency),
            recalls.routes(memory, idempotency),
            memory_users.routes(memory),
        ):
            application.include_router(router)
        return application

    async def _check_database(self) -> None:
        async with acquire(self._pool) as connection:
            await self._queries.answers(connection)


def _bare_application(health: Health) -> FastAPI:
    application = documented_api(version=version("caisson-gateway"))
    application.router.routes.extend(health.routes())
    application.add_exception_handler(CaissonError, problems.on_caisson_error)
    application.add_exception_handler(RequestValidationError, problems.on_validation_error)
    application.add_exception_handler(HTTPException, problems.on_http_exception)
    application.add_exception_handler(Exception, problems.on_bug)
    application.add_middleware(Edge, refuse=problems.problem)
    application.add_middleware(Traced)
    return application


def _seal(credential: Credential, *, public_key: str) -> str:
    try:
        return seal(credential, public_key)
    except ValueError as error:
        raise Unavailable("the proxy's public key is not usable; credentials cannot be sealed") from error
