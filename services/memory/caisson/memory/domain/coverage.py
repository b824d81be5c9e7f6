"""The lexical score of a memory: how much of a query its text says.

Invariant: in [0, 1] on every backend and in a corpus of any size, so that a threshold keeps its meaning; a BM25 score
has neither. Of a long text the best passage counts, for a book says everything somewhere.
"""

import re
from collections import Counter
from collections.abc import Sequence

from caisson.memory.domain.terms import fold

PASSAGE_CHARS = 1_500

_IDEOGRAM = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]"
)


class Coverage:
    """Scores texts against the terms of one query."""

    def __init__(self, query_terms: Sequence[str]) -> None:
        self._patterns = [re.compile(_pattern(term)) for term in query_terms]

    def of(self, text: str) -> float:
        """Return the share of the terms that one passage of the text holds; 0 for no terms."""
        if not self._patterns:
            return 0.0
        folded = text.lower() if text.isascii() else fold(text)
        if len(folded) <= PASSAGE_CHARS:
            held = sum(pattern.search(folded) is not None for pattern in self._patterns)
        else:
            held = self._most_in_a_passage(folded)
        return held / len(self._patterns)

    def _most_in_a_passage(self, folded: str) -> int:
        places = sorted(
            (match.start(), number)
            for number, pattern in enumerate(self._patterns)
            for match in pattern.finditer(folded)
        )
        held: Counter[int] = Counter()
        most = end = 0
        for start, number in places:
            while end < len(places) and places[end][0] < start + PASSAGE_CHARS:
                held[places[end][1]] += 1
                end += 1
            most = max(most, len(held))
            if most == len(self._patterns):
                break
            held[number] -= 1
            if not held[number]:
                del held[number]
        return most


def _pattern(term: str) -> str:
    """A word stands between non-words; scripts without spaces have no such edges."""
    return re.escape(term) if _IDEOGRAM.search(term) else rf"(?<![^\W_]){re.escape(term)}(?![^\W_])"
