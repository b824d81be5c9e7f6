"""The lexical score of a memory: how much of a query its text says.

Invariant: in [0, 1] on every backend and in a corpus of any size, so that a threshold keeps its meaning; a BM25 score
has neither. Of a long text the best passage counts, for a book says everything somewhere.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence

from caisson.memory.domain.terms import fold, terms

PASSAGE_CHARS = 1_500

_IDEOGRAM = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def coverage(query_terms: Sequence[str], text: str) -> float:
    """Return the share of the terms that one passage of the text holds; 0 for no terms."""
    if not query_terms:
        return 0.0
    if len(text) <= PASSAGE_CHARS:
        held = set(terms(text))
        return sum(term in held for term in query_terms) / len(query_terms)
    return _most_in_a_passage(query_terms, fold(text)) / len(query_terms)


def _most_in_a_passage(query_terms: Sequence[str], folded: str) -> int:
    places = sorted((match.start(), term) for term in query_terms for match in re.finditer(_pattern(term), folded))
    most, last = 0, [start for start, _ in places]
    for at, (start, _) in enumerate(places):
        end = bisect_left(last, start + PASSAGE_CHARS)
        most = max(most, len({term for _, term in places[at:end]}))
        if most == len(query_terms):
            break
    return most


def _pattern(term: str) -> str:
    """A word stands between non-words; scripts without spaces have no such edges."""
    return re.escape(term) if _IDEOGRAM.search(term) else rf"(?<![^\W_]){re.escape(term)}(?![^\W_])"
