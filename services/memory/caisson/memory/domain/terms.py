"""The terms of a text for search without an index: words, ids whole and in parts, accents folded, CJK in pairs.

Source: overlapping bigrams are the usual treatment of scripts without spaces (Unicode UAX #29 leaves them open).
"""

import re
from collections.abc import Iterator

from caisson.memory.domain.normal_forms import normal

MAX_TERM_CHARS = 64
MAX_TERMS_BYTES = 900_000
"""PostgreSQL keeps 1 MiB of lexemes in a row."""

_MAX_LONGEST = 16

_COMPOUND = re.compile(r"\w+(?:[-.:/@#+]+\w+)*")
_PART = re.compile(r"[^\W_]+")
_DENSE = re.compile(
    "([\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]+)"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_STOPWORD_LIST = """
    a an and are as at be but by can did do does for from had has have he her his how i if in into is it its me my no
    not of on or our she so than that the their them then there they this to was we were what when where which who
    why will with would you your
"""
_STOPWORDS = frozenset(_STOPWORD_LIST.split())


def terms(text: str) -> list[str]:
    """Return the distinct terms of a stored text."""
    return _distinct(_terms(text, single=True))


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query: no stopwords, and a run of CJK only in pairs."""
    return [term for term in _distinct(_terms(text, single=False)) if term not in _STOPWORDS]


def longest(found: list[str]) -> list[str]:
    """Return the longest few of the terms of a text, which few other texts have all."""
    return sorted(found, key=len)[-_MAX_LONGEST:]


def quoted(term: str) -> str:
    """Return a term as a tsquery of that one lexeme, whatever characters it has."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _terms(text: str, *, single: bool) -> Iterator[str]:
    for match in _COMPOUND.finditer(fold(text)):
        compound = match.group()
        parts = _PART.findall(compound)
        if len(parts) > 1:
            yield compound
        for part in parts:
            yield from _split(part, single=single)


def _split(part: str, *, single: bool) -> Iterator[str]:
    for piece in _DENSE.split(part):
        if not _DENSE.fullmatch(piece):
            yield piece
            continue
        yield from (piece[at : at + 2] for at in range(len(piece) - 1))
        if single or len(piece) == 1:
            yield from piece


def fold(text: str) -> str:
    """Return a text without case, accents and widths, as its terms are."""
    decomposed = normal("NFD", normal("NFKC", text).casefold())
    return normal("NFC", _ACCENTS.sub("", decomposed))


def _distinct(found: Iterator[str]) -> list[str]:
    kept: dict[str, None] = {}
    size = 0
    for term in found:
        short = term[:MAX_TERM_CHARS]
        if short and short not in kept:
            kept[short] = None
            size += len(short.encode())
        if size > MAX_TERMS_BYTES:
            break
    return list(kept)
