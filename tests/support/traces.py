"""Looking for a word in all that a plane keeps: each column of each table, and each file that is not PostgreSQL's.

A PostgreSQL file holds what its tables hold and, until it is vacuumed and its log is reused, what they held before:
that is looked into through SQL alone.
"""

import base64
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

_RELATIONS = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname <> 'pg_toast'
UNION ALL SELECT 'pg_stat_activity'
"""
_BASE64_LENGTHS = 3


def spellings(word: str) -> set[str]:
    """Return an ASCII word as it might stand somewhere, in lower case: plain, in hexadecimal digits, in base64."""
    plain = word.encode()
    found = {word, plain.hex(), word.encode("utf-16-le").hex()}
    for skipped in range(_BASE64_LENGTHS):
        coded = base64.b64encode(b"x" * skipped + plain).decode().rstrip("=")
        found.add(coded[4 if skipped else 0 : -1])
    return {spelling.lower() for spelling in found}


async def tables_with(word: str, database_url: str) -> list[str]:
    """Return every relation of the database, the catalogue's own too, in a row of which the word stands."""
    connection = await asyncpg.connect(database_url)
    try:
        relations = [row[0] for row in await connection.fetch(_RELATIONS)]
        asked = "SELECT count(*) FROM {} t, unnest($1::text[]) AS word WHERE strpos(lower(t::text), word) > 0"
        words = sorted(spellings(word))
        return [name for name in relations if await connection.fetchval(asked.format(name), words)]
    finally:
        await connection.close()


async def analyze(database_url: str) -> None:
    """Gather statistics now, as autovacuum does at some time."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("ANALYZE")
    await connection.close()


def files_with(word: str, folder: Path, *, but: Path) -> list[str]:
    """Return the files below a folder, but for those below `but`, that hold the word or are named by it."""
    words = [spelling.encode() for spelling in spellings(word)] + [word.encode("utf-16-le")]
    files = [path for path in folder.rglob("*") if path.is_file() and but not in path.parents]
    return [str(path) for path in files if any(each in _content(path) for each in words)]


def _content(path: Path) -> bytes:
    try:
        return (str(path).encode() + path.read_bytes()).lower()
    except FileNotFoundError:
        return b""


def as_superuser(database_url: str) -> str:
    """Return the URL with which the embedded server's superuser sees the same database."""
    parts = urlsplit(database_url)
    _, _, rest = parts.netloc.partition(":")
    return urlunsplit(parts._replace(netloc=f"{quote('postgres')}:{rest}"))
