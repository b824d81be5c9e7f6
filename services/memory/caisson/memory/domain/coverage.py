"""The lexical score of a memory: how much of a query its text says.

Invariant: in [0, 1] on every backend and in a corpus of any size, so that a threshold keeps its meaning; a BM25 score
has neither. Of a long text the best passage counts, for a book says everything somewhere.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from caisson.memory.domain.terms import fold

PASSAGE_CHARS = 1_500

_IDEOGRAM = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]"
)


class Coverage:
    """Scores texts against the terms of one query. Words are looked for as they are: a pattern of each costs more."""

    def __init__(self, query_terms: Sequence[str]) -> None:
        self._words = [_Word(term) for term in query_terms]

    def of(self, text: str) -> float:
        """Return the share of the terms that one passage of the text holds; 0 for no terms."""
        if not self._words:
            return 0.0
        folded = text.lower() if text.isascii() else fold(text)
        if len(folded) <= PASSAGE_CHARS:
            held = sum(next(word.places(folded), None) is not None for word in self._words)
        else:
            held = self._most_in_a_passage(folded)
        return held / len(self._words)

    def _most_in_a_passage(self, folded: str) -> int:
        places = sorted((place, number) for number, word in enumerate(self._words) for place in word.places(folded))
        held: Counter[int] = Counter()
        most = end = 0
        for start, number in places:
            while end < len(places) and places[end][0] < start + PASSAGE_CHARS:
                held[places[end][1]] += 1
                end += 1
            most = max(most, len(held))
            if most == len(self._words):
                break
            held[number] -= 1
            if not held[number]:
                del held[number]
        return most


class _Word:
    """A term to be found between non-words; scripts without spaces have no such edges."""

    def __init__(self, term: str) -> None:
        self._term = term
        self._has_edges = not _IDEOGRAM.search(term)

    def places(self, text: str) -> Iterator[int]:
        """Yield where the term stands in a text."""
        at = text.find(self._term)
        while at >= 0:
            end = at + len(self._term)
            stands = not (self._has_edges and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()))
            if stands:
                yield at
            at = text.find(self._term, end if stands else at + 1)
