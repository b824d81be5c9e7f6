"""Everything that a database stores: for tests of what must not be in it."""

import asyncpg

COLUMNS = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'ledger'"


async def whole_ledger(ledger: asyncpg.Pool) -> str:
    """Return every row of every table; byte columns in hexadecimal and, where they hold text, as text."""
    columns = await ledger.fetch(COLUMNS)
    tables = {column["table_name"] for column in columns}
    assert len(tables) > 8
    texts = [f"SELECT t::text FROM ledger.{table} t" for table in tables]
    texts += [
        f"SELECT encode({column['column_name']}, 'escape') FROM ledger.{column['table_name']}"
        for column in columns
        if column["data_type"] == "bytea"
    ]
    rows = [row for text in texts for row in await ledger.fetch(text)]
    return "\n".join(str(row[0]) for row in rows)


async def tables_with(pool: asyncpg.Pool, text: str) -> list[str]:
    """Return every table of the database in which a text stands anywhere."""
    tables = await pool.fetch(
        "SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    return [
        row["name"]
        for row in tables
        if await pool.fetchval(f"SELECT count(*) FROM {row['name']} t WHERE t::text LIKE $1", f"%{text}%")
    ]
