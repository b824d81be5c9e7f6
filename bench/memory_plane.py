"""A memory service with its servers and nothing else, filled with memories of many tenants, and a caller on its bus.

Rows and points are written side by side, without the service: a hundred thousand would take it a quarter of an hour.
Texts are sentences of a small language; a vector is that of its sentence, moved a little.
"""

import asyncio
import random
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np

from caisson.common import streams
from caisson.common.bus import Bus
from caisson.common.ids import TenantId
from caisson.common.memories import Caller
from caisson.common.messages import Message
from caisson.common.postgres import Pool, connect_pool, migrate
from caisson.common.recalls import Search
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import Subject
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from caisson.memory.domain.indexing import Point, Vector
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.terms import terms
from caisson.stack.data_folder import DataFolder
from caisson.stack.environment import Servers
from caisson.stack.nats import EmbeddedNats
from caisson.stack.postgres import EmbeddedPostgres
from caisson.stack.service_process import ServiceProcess
from caisson.stack.services import Services

ReplyT = TypeVar("ReplyT", bound=Message)
Taker = Callable[[Sequence[Point]], Awaitable[None]]

TENANTS = 100
USERS = 10
BATCH = 1_000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ENDING = 9
ENDS = datetime(2126, 1, 1, tzinfo=UTC)
"""Every ninth memory has an end, and is in force."""
WHO = ("Marta", "Oskar", "Priya", "Tomasz", "Yuki", "Nadia", "Rafael", "Ingrid", "Samuel", "Beatriz")
DOES = ("prefers", "orders", "repairs", "sells", "paints", "carries", "counts", "collects", "avoids", "borrows")
WHAT = ("green tea", "old clocks", "sailing boats", "copper pipes", "wooden chairs", "night trains", "red apples")
WHERE = ("in Oslo", "at the harbour", "on the third floor", "near the mill", "by the river", "in the attic")

_QUIET = {"MEMORY_LOG_LEVEL": "warning"}
_ROWS = """
INSERT INTO memory.memories (
    tenant_id, memory_id, user_id, owner_scope, scopes, scope_key, layer, text, content_hash, context_key, importance,
    confidence, trust, valid_from, expires_at, provenance_kind, chunks, indexed_version, embedder)
SELECT t, m, u, s, ARRAY[s], k, 'semantic', x, k, k, 0.5, 1, 1, $7, e, 'person', 1, 1, $8
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $9::timestamptz[])
    AS r (t, m, u, s, x, k, e)
"""
_EMBEDDING = "INSERT INTO memory.embedding (name, dimensions, digest) VALUES ($1, $2, $3)"
_LEXEMES = "INSERT INTO memory.lexemes (tenant_id, memory_id, lexemes) VALUES ($1, $2, array_to_tsvector($3::text[]))"


def sentences() -> list[str]:
    """Return every sentence of the small language."""
    return [f"{who} {does} {what} {where}" for who in WHO for does in DOES for what in WHAT for where in WHERE]


@dataclass(frozen=True, kw_only=True)
class MemoryPlane:
    """The servers, what is stored, and the way to the service."""

    folder: DataFolder
    pool: Pool
    services: Services
    bus: Bus

    def service(self, **settings: str) -> ServiceProcess:
        """Return the service, with some more settings; it is not started."""
        overrides = {"memory": {**self.services.overrides.get("memory", {}), **settings}}
        return replace(self.services, overrides=overrides).memory("memory")

    async def ask(self, subject: Subject, request: Message, reply: type[ReplyT]) -> ReplyT:
        """Call the service as the gateway does."""
        return await self.bus.call(subject, request, reply, timeout_s=30)


@asynccontextmanager
async def memory_plane(folder: Path, *, settings: Mapping[str, str] = _QUIET) -> AsyncIterator[MemoryPlane]:
    """Start the servers and prepare the schema."""
    data = DataFolder(folder)
    data.lock()
    keyring = data.keyring()
    postgres = EmbeddedPostgres(data.postgres, password=keyring.postgres_password)
    nats = EmbeddedNats(data.nats, passwords=keyring.nats_passwords)
    await postgres.start()
    await nats.start()
    pool = await connect_pool(postgres.url, application="bench", max_size=4)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    known = {"nats_url": nats.url, "nats_user": "gateway", "nats_password": keyring.nats_passwords["gateway"]}
    bus = Bus(ServiceSettings.model_validate(known), service="gateway", on_closed=lambda: None)
    await bus.start()
    await streams.declare(bus.jetstream)
    servers = Servers(database_url=postgres.url, nats_url=nats.url, keyring=keyring)
    overrides = {"memory": dict(settings)}
    try:
        yield MemoryPlane(
            folder=data, pool=pool, services=Services(folder=data, servers=servers, overrides=overrides), bus=bus
        )
    finally:
        await bus.stop()
        await pool.close()
        await nats.stop()
        await postgres.stop()
        data.unlock()


def questions(count: int) -> list[Search]:
    """Return searches by callers of every tenant."""
    rng = random.Random(3)
    return [
        Search(caller=caller(rng.randrange(TENANTS * USERS)), query=f"who {' '.join(sentence(rng).split()[1:])}?")
        for _ in range(count)
    ]


def sentence(rng: random.Random) -> str:
    """Return a sentence of the small language."""
    return " ".join(rng.choice(words) for words in (WHO, DOES, WHAT, WHERE))


def caller(number: int) -> Caller:
    """Return the caller of that number."""
    return Caller(tenant_id=f"tenant-{number % TENANTS}", user_id=f"user-{number // TENANTS % USERS}", scopes=[])


class Filler:
    """Writes memories to store and index; the service must be stopped."""

    def __init__(self, plane: MemoryPlane) -> None:
        self._plane = plane
        self._random = np.random.default_rng(7)
        self._known: list[tuple[str, Vector]] = []

    async def fill(self, begin: int, end: int, *, also: Sequence[Taker] = ()) -> None:
        """Add the memories numbered from `begin` to before `end`; `also` are given the same.

        Store and index are at rest afterwards: vacuumed and packed, as both are in time by themselves.
        """
        if not self._known:
            await self._learn()
        index = await EdgeIndex.open(self._plane.folder.index("memory"), MiniLm.identity)
        for start in range(begin, end, BATCH):
            points = [self._point(number) for number in range(start, min(start + BATCH, end))]
            await self._store(points)
            await index.upsert(points)
            await asyncio.gather(*(take(points) for take in also))
        await index.optimize()
        await index.close()
        await self._plane.pool.execute("TRUNCATE memory.index_outbox")
        await self._plane.pool.execute("VACUUM (ANALYZE) memory.memories, memory.lexemes")

    async def _learn(self) -> None:
        embedder = await MiniLm.load(threads=2)
        texts = sentences()
        self._known = list(zip(texts, await embedder.embed(texts), strict=True))
        await embedder.close()
        identity = embedder.identity
        await self._plane.pool.execute(_EMBEDDING, identity.name, identity.dimensions, identity.digest)

    def _point(self, number: int) -> Point:
        text, vector = self._known[int(self._random.integers(len(self._known)))]
        moved = np.asarray(vector) + self._random.standard_normal(len(vector)) * 0.01
        user = f"user-{number // TENANTS % USERS}"
        expires_at = ENDS if number // TENANTS % ENDING == 0 else None
        return Point(
            memory_id=f"mem_{uuid.UUID(int=number).hex}",
            chunk=0,
            version=1,
            tenant=TenantId(f"tenant-{number % TENANTS}"),
            scopes=frozenset({"tenant" if number // TENANTS % 2 else f"user:{user}"}),
            layer=Layer.SEMANTIC,
            valid_from=BEGAN + timedelta(seconds=number),
            valid_to=None,
            expires_at=expires_at,
            text=f"{text}, case {number}",
            dense=(moved / np.linalg.norm(moved)).tolist(),
        )

    async def _store(self, points: Sequence[Point]) -> None:
        scopes = [next(iter(point.scopes)) for point in points]
        await self._plane.pool.execute(
            _ROWS,
            [point.tenant for point in points],
            [point.memory_id for point in points],
            [scope.removeprefix("user:") if scope != "tenant" else "user-0" for scope in scopes],
            scopes,
            [point.text for point in points],
            [sha256(point.text.encode()).digest() for point in points],
            BEGAN,
            MiniLm.identity.digest,
            [point.expires_at for point in points],
        )
        rows = [(point.tenant, point.memory_id, terms(point.text)) for point in points]
        await self._plane.pool.executemany(_LEXEMES, rows)


def secret() -> str:
    """Return a word that nobody else knows."""
    return f"secret{secrets.token_hex(6)}"
