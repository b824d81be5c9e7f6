"""How many pages of the database a statement touches: the work that it does, whatever the machine is doing."""

import json
from collections.abc import Mapping
from typing import Any

from caisson.common.postgres import Connection

_PLANS = ("force_generic_plan", "force_custom_plan")
"""Those of a connection that has executed a statement often, and those of one that has not."""

Statement = tuple[str, Mapping[str, str]]
"""The name of a statement, and SQL for each of its parameters."""


async def touched(
    connection: Connection, queries: Any, statements: Mapping[str, Statement]
) -> dict[tuple[str, str], int]:
    """Return how many pages each of the statements touches under each kind of plan."""
    found = {}
    for plan in _PLANS:
        await connection.execute(f"SET plan_cache_mode = {plan}")
        for label, (name, values) in statements.items():
            found[label, plan] = await _buffers(connection, queries, name, values)
    return found


async def _buffers(connection: Connection, queries: Any, name: str, values: Mapping[str, str]) -> int:
    """Execute a named statement as a prepared one, undo it, and return how many pages it touched.

    The first time does not count: a connection looks much up only once.
    """
    sql, names = getattr(queries, name).sql, queries.driver_adapter.var_sorted[name]
    types = ", ".join(parameter.name for parameter in (await connection.prepare(sql)).get_parameters())
    given = ", ".join(values[parameter] for parameter in names)
    await connection.execute(f"PREPARE measured {f'({types})' if types else ''} AS {sql}")
    try:
        execute = f"EXECUTE measured {f'({given})' if given else ''}"
        await _pages(connection, execute)
        return await _pages(connection, execute)
    finally:
        await connection.execute("DEALLOCATE measured")


async def _pages(connection: Connection, execute: str) -> int:
    transaction = connection.transaction()
    await transaction.start()
    try:
        told = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}")
    finally:
        await transaction.rollback()
    plan = json.loads(told)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
