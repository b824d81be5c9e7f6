"""Full text in PostgreSQL as an index: points become rows of the store, of which only the searching is under test."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import groupby
from operator import attrgetter

from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.memory.adapters.fulltext import FullText
from caisson.memory.adapters.vectors import query_vector
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.indexing import Candidates, Index, IndexQuery, Point
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.terms import terms
from tests.support.gateway import create_database
from tests.support.memory_points import DIMENSIONS

_WRITE = """
WITH written AS (
    INSERT INTO memory.memories (
        tenant_id, memory_id, user_id, owner_scope, scopes, scope_key, layer, text, content_hash, context_key,
        outcome, importance, confidence, trust, valid_from, valid_to, expires_at, provenance_kind, run_id, session_id,
        version)
    VALUES ($1, $2, 'u', ($3::text[])[1], $3, $4, $5, $6, $4, $4, 'ok', 1, 1, 1, $7, $8, $9, 'person', 'r', 's', $10)
    ON CONFLICT (tenant_id, memory_id) DO UPDATE SET text = excluded.text, version = excluded.version
    WHERE memories.version <= excluded.version
    RETURNING tenant_id, memory_id)
INSERT INTO memory.lexemes SELECT tenant_id, memory_id, array_to_tsvector($11::text[]) FROM written
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET lexemes = excluded.lexemes
"""


class RowsIndex:
    """Rows of the store, searched by their terms; there is no likeness."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._fulltext = FullText(pool, load_queries(QUERIES_FILE))

    async def upsert(self, points: Sequence[Point]) -> None:
        by_memory = attrgetter("tenant", "memory_id")
        rows = [_row(list(chunks)) for _, chunks in groupby(sorted(points, key=by_memory), key=by_memory)]
        await self._pool.executemany(_WRITE, rows)

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        await self._pool.execute(
            "DELETE FROM memory.memories WHERE tenant_id = $1 AND memory_id = ANY ($2)", tenant, list(memory_ids)
        )

    async def search(self, query: IndexQuery, filter_: HardFilter) -> Candidates:
        query_vector(query, DIMENSIONS)
        return await self._fulltext.search(query.text or "", filter_, limit=query.limit)

    async def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        sql = """SELECT tenant_id, memory_id, version FROM memory.memories
                 WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text[] IS NULL OR memory_id = ANY ($2))"""
        for row in await self._pool.fetch(sql, tenant, memory_ids):
            yield row["tenant_id"], row["memory_id"], row["version"]

    async def count(self) -> int:
        counted: int = await self._pool.fetchval("SELECT count(*) FROM memory.memories")
        return counted

    async def optimize(self) -> None:
        await self._pool.execute("ANALYZE memory.memories")

    async def drop_older(self) -> None:
        """Do nothing: rows have no embedder."""

    async def check(self) -> None:
        await self.count()

    async def close(self) -> None:
        await self._pool.close()


def _row(chunks: list[Point]) -> Iterable[object]:
    first, text = chunks[0], "\n".join(chunk.text for chunk in chunks)
    unique = sha256(first.memory_id.encode()).digest()
    times = (first.valid_from, first.valid_to, first.expires_at)
    return (
        *(first.tenant, first.memory_id, sorted(first.scopes), unique, first.layer.value, text),
        *times,
        first.version,
        terms(text),
    )


@asynccontextmanager
async def rows_index(postgres_url: str) -> AsyncIterator[Index]:
    """An empty store of its own."""
    url = await create_database(postgres_url)
    pool = await connect_pool(url, application="tests", max_size=8)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    index = RowsIndex(pool)
    yield index
    await index.close()
