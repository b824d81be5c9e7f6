"""The tenant in a query string, byte-exact.

Invariant: for any query, the trusted pair stands once between `&`, no other spelling of its key is left after `&` or
`;` (both separate pairs for some server), and everything else keeps its bytes and its order.
"""

from urllib.parse import unquote_to_bytes

from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found
from caisson.proxy.domain.spelling import Spellings


def rewrite_query(query: bytes | None, spellings: Spellings, pair: bytes, trusted: str) -> tuple[bytes, Found]:
    """Put `pair` where the key first stood, or at the end, and remove every other occurrence."""
    if not query:
        return pair, NOTHING
    pieces = query.split(b"&")
    if b";" in query:
        return _rewrite_mixed(pieces, spellings, pair, trusted)
    for piece in pieces:
        if spellings[piece.partition(b"=")[0]]:
            return _replace(pieces, spellings, pair, trusted)
    return b"%b&%b" % (query, pair), NOTHING


def _replace(pieces: list[bytes], spellings: Spellings, pair: bytes, trusted: str) -> tuple[bytes, Found]:
    hits = [index for index, piece in enumerate(pieces) if spellings[piece.partition(b"=")[0]]]
    found = _compare([pieces[index] for index in hits], trusted)
    pieces[hits[0]] = pair
    for index in reversed(hits[1:]):
        del pieces[index]
    return b"&".join(pieces), found


def _rewrite_mixed(pieces: list[bytes], spellings: Spellings, pair: bytes, trusted: str) -> tuple[bytes, Found]:
    written: list[bytes] = []
    removed: list[bytes] = []
    placed = False
    for piece in pieces:
        parts = piece.split(b";")
        gone = [part for part in parts if spellings[part.partition(b"=")[0]]]
        if gone and not placed and parts[0] == gone[0]:
            written.append(pair)
            placed = True
        kept = [part for part in parts if part not in gone]
        if kept:
            written.append(b";".join(kept))
        removed += gone
    if not placed:
        written.append(pair)
    return b"&".join(written), _compare(removed, trusted) if removed else NOTHING


def _compare(pieces: list[bytes], trusted: str) -> Found:
    return FOREIGN if any(_is_foreign(piece.partition(b"=")[2], trusted) for piece in pieces) else TRUSTED


def _is_foreign(value: bytes, trusted: str) -> bool:
    readings = {unquote_to_bytes(value), unquote_to_bytes(value.replace(b"+", b" "))}
    return bool(value) and trusted.encode() not in readings
