"""Recall without the index: PostgreSQL full text over our own terms, under the same hard filter.

The score is BM25 (Robertson and Zaragoza 2009) with each term counted once, its rarity taken among what was found.
"""

import math
from collections import Counter
from typing import Any

from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.rows import Row, hard
from caisson.memory.domain.indexing import Candidate, Candidates
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.terms import query_terms, quoted

LEG = "fulltext"
_CONSIDERED = 2_000
_MAX_QUERY_TERMS = 64
_K1 = 1.2
_B = 0.75
_RANK_CONSTANT = 2


class FullText:
    """The lexical leg in SQL. Its fused score is that of one leg: the rank alone."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def search(self, text: str, filter_: HardFilter, *, limit: int) -> Candidates:
        """Return the memories that hold most of the query's terms, best first; none where the query has no terms."""
        terms = query_terms(text)[:_MAX_QUERY_TERMS]
        if not terms:
            return Candidates(found=[], legs=(LEG,), sparse_terms=0)
        lexemes = [quoted(term) for term in terms]
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.search_lexemes(
                    connection,
                    **hard(filter_),
                    terms=lexemes,
                    words=terms,
                    limit=max(limit, _CONSIDERED),
                )
            )
            corpus = await self._sql.visible_count(connection, **hard(filter_))
        ranked = _rank(rows, corpus)[:limit]
        found = [
            Candidate(memory_id=memory_id, cosine=None, lexical=score, fused=1 / (_RANK_CONSTANT + rank))
            for rank, (memory_id, score) in enumerate(ranked)
        ]
        return Candidates(found=found, legs=(LEG,), sparse_terms=len(terms))


def _rank(rows: list[Row], corpus: int) -> list[tuple[str, float]]:
    if not rows:
        return []
    mean_size = sum(row["size"] for row in rows) / len(rows)
    holding = Counter(place for row in rows for place in row["matched"])
    rarity = {place: math.log(1 + (corpus - count + 0.5) / (count + 0.5)) for place, count in holding.items()}

    def score(row: Row) -> float:
        weight = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * row["size"] / mean_size))
        return float(weight * sum((rarity[place] for place in row["matched"]), 0.0))

    return sorted(((row["memory_id"], score(row)) for row in rows), key=lambda found: (-found[1], found[0]))
