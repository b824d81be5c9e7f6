"""Telling a recall's own output from news: a text that only repeats what was injected in the same session.

Invariant: one statement that was not injected makes the whole text news.
"""

import re
from collections.abc import Mapping

from caisson.memory.domain.hashing import normalise

_MARKUP = re.compile(r"</?[a-z_][^<>]{0,200}>|\bmem_[0-9a-z]{26}\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_LIST_MARK = re.compile(r"(?:[>*•–-]\s*|\d{1,3}[.)]\s+)+")
_DECORATION = " \t\"'“”`"
_STOPS = _DECORATION + ".!?。！？"
_UNESCAPED = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&amp;": "&"}


def find_echo(text: str, injected: Mapping[str, str]) -> str | None:
    """Return the id of an injected memory that the text repeats, if it says nothing else.

    Args:
        text: what is to be remembered.
        injected: texts by memory id, as recalls of the same session returned them.
    """
    known = {statement: memory_id for memory_id, told in injected.items() for statement in _statements(told)}
    said = _statements(text)
    if not said or not all(statement in known for statement in said):
        return None
    return known[said[0]]


def _statements(text: str) -> list[str]:
    lines = _MARKUP.sub(" ", _unescape(text)).splitlines()
    pieces = [piece for line in lines for piece in _SENTENCE_END.split(_unlisted(line))]
    return [statement for piece in pieces if (statement := normalise(_unlisted(piece).rstrip(_STOPS)))]


def _unlisted(piece: str) -> str:
    """Return what stands behind list marks and between quotes: `2. "Likes tea"` says `Likes tea`."""
    piece = piece.strip(_DECORATION)
    mark = _LIST_MARK.match(piece)
    return (piece[mark.end() :] if mark else piece).strip(_DECORATION)


def _unescape(text: str) -> str:
    for escaped, plain in _UNESCAPED.items():
        text = text.replace(escaped, plain)
    return text
