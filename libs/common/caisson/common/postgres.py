"""PostgreSQL: the pool, plain-SQL migrations, and named queries.

Invariant: SQL lives in `.sql` files; JSON columns hold Python values on this side.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import aiosql
import asyncpg
from aiosql.adapters.asyncpg import AsyncPGAdapter
from asyncpg_trek import Direction, execute
from asyncpg_trek._solver import find_migration_path
from asyncpg_trek._types import Migration
from asyncpg_trek.asyncpg import AsyncpgBackend

from caisson.common.errors import Misconfigured, Unavailable

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
Pool = asyncpg.Pool

_MIGRATION_NAME = re.compile(r"^(?P<number>\d{4})_[a-z0-9_]+\.sql$")
_INITIAL = "initial"
_MIGRATION_LOCK = 0x6361_6973  # any constant that only migrations use
_COMMAND_TIMEOUT_S = 15
_CONNECT_TIMEOUT_S = 5

DATABASE_TROUBLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a loop that must go on survives; a server that dies in mid-protocol may be told as an internal error."""

_UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TransactionRollbackError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


async def _prepare_connection(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=json.loads, format="text"
    )


def _encode_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


async def _keep_state(_: Connection) -> None:
    """Skip the pool's reset round trip: our statements leave no session state behind."""


async def connect_pool(url: str, *, application: str, max_size: int = 10) -> Pool:
    """Open a pool whose connections speak JSON.

    Raises:
        Unavailable: when the server cannot be reached.
    """
    try:
        return await asyncpg.create_pool(
            url,
            min_size=2,
            max_size=max_size,
            timeout=_CONNECT_TIMEOUT_S,
            command_timeout=_COMMAND_TIMEOUT_S,
            init=_prepare_connection,
            reset=_keep_state,
            server_settings={"application_name": application, "jit": "off"},
        )
    except _UNREACHABLE as error:
        raise Unavailable(f"PostgreSQL cannot be reached: {error}") from error


class _ConnectionAdapter(AsyncPGAdapter):
    """aiosql's adapter for callers that always pass a connection: it need not look for a pool at every statement."""

    async def select(self, connection: Connection, name: str, sql: str, parameters: Any, *_: Any) -> Any:
        for row in await connection.fetch(sql, *self._ordered(name, parameters)):
            yield row

    async def select_one(self, connection: Connection, name: str, sql: str, parameters: Any, *_: Any) -> Any:
        return await connection.fetchrow(sql, *self._ordered(name, parameters))

    async def select_value(self, connection: Connection, name: str, sql: str, parameters: Any) -> Any:
        return await connection.fetchval(sql, *self._ordered(name, parameters))

    async def insert_update_delete(self, connection: Connection, name: str, sql: str, parameters: Any) -> Any:
        return await connection.execute(sql, *self._ordered(name, parameters))

    def _ordered(self, name: str, parameters: dict[str, Any]) -> list[Any]:
        return [parameters[variable] for variable in self.var_sorted[name]]


def load_queries(file: Path) -> Any:
    """Load the named statements of one `queries.sql`; each is an async method that takes a connection first."""
    return aiosql.from_path(file, _ConnectionAdapter, mandatory_parameters=False)


async def fetch_all(rows: AsyncIterator[Any]) -> list[Any]:
    """Collect the rows of a named SELECT."""
    return [row async for row in rows]


@asynccontextmanager
async def acquire(pool: Pool) -> AsyncIterator[Connection]:
    """Hold one connection.

    Raises:
        Unavailable: the database cannot be reached, went away, or undid the transaction; whether a statement took
            effect is unknown.
    """
    try:
        async with pool.acquire() as connection:
            yield connection
    except _UNREACHABLE as error:
        raise Unavailable("the database does not answer now") from error


@asynccontextmanager
async def transaction(pool: Pool, *, repeatable_read: bool = False) -> AsyncIterator[Connection]:
    """Hold one connection in one transaction; never across a network call or a command.

    READ COMMITTED, or REPEATABLE READ and read-only where several statements must see one state. Raises as `acquire`.
    """
    isolation: Literal["repeatable_read", "read_committed"] = (
        "repeatable_read" if repeatable_read else "read_committed"
    )
    async with (
        acquire(pool) as connection,
        connection.transaction(isolation=isolation, readonly=repeatable_read),
    ):
        yield connection


async def migrate(pool: Pool, folder: Path, *, schema: str) -> str:
    """Apply the forward-only `NNNN_what.sql` files of `folder` and return the revision reached.

    Replicas may call it at once: an advisory lock lets one work and the others find it done.

    Raises:
        Misconfigured: when the files are not numbered 0001, 0002, … without a gap.
    """
    async with pool.acquire() as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", _MIGRATION_LOCK)
        try:
            backend = AsyncpgBackend(connection, schema=schema)
            migrations = _collect(folder, backend)
            target = migrations[-1].to_rev
            async with backend.connect() as executor:
                await executor.create_table_idempotent()
                current = await executor.get_current_revision() or _INITIAL
            await execute(
                backend,
                find_migration_path(current, target, direction=Direction.up, migrations=migrations),
            )
            return str(target)
        finally:
            await connection.execute("SELECT pg_advisory_unlock($1)", _MIGRATION_LOCK)


def _collect(folder: Path, backend: AsyncpgBackend) -> list[Migration[Any]]:
    files = sorted(path for path in folder.iterdir() if _MIGRATION_NAME.match(path.name))
    migrations: list[Migration[Any]] = []
    previous = _INITIAL
    for expected, path in enumerate(files, start=1):
        revision = path.name[:4]
        if int(revision) != expected:
            raise Misconfigured(f"migration {path.name} should be number {expected:04}")
        migrations.append(
            Migration(
                operation=backend.prepare_operation_from_sql_file(path),
                from_rev=previous,
                to_rev=revision,
                direction=Direction.up,
            )
        )
        previous = revision
    if not migrations:
        raise Misconfigured(f"no migrations in {folder}")
    return migrations
