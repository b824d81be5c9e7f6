"""Everything that the ledger stores, as one text: for tests of what must not be in it."""

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
