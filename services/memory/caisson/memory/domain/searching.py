"""Finding candidates with whatever is up: the index with both legs, with one of them, or full text in the store.

Invariant: what is away is told with its reason; an answer without it never looks whole.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

import structlog

from caisson.common.errors import Unavailable
from caisson.memory.domain.embedding import IndexReadiness, IndexState
from caisson.memory.domain.fusion import joined
from caisson.memory.domain.indexing import Candidates, Embedder, Index, IndexQuery, Vector
from caisson.memory.domain.patience import Patience, hear
from caisson.memory.domain.principals import HardFilter

INDEX_BACKEND = "vector"
FULLTEXT_BACKEND = "sql_bm25"
_QUERY_CHUNKS = 8
_ANSWERED_WITHIN_S = 8.0
"""For the embedder and for the index: both may hang, and full text still answers before the caller gives up."""

log = structlog.get_logger(__name__)


class FullText(Protocol):
    """Lexical search without the index."""

    async def search(self, text: str, filter_: HardFilter, *, limit: int) -> Candidates:
        """Return memories that hold terms of the text, under the hard filter; no candidate has a cosine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What was found, where, and what was away."""

    candidates: Candidates
    backend: str
    degraded: tuple[str, ...]


class Searcher:
    """Embeds and searches; every search tries the whole way that answers, so that it recovers by itself."""

    def __init__(
        self,
        embedder: Embedder,
        index: Index,
        fulltext: FullText,
        *,
        readiness: IndexReadiness | None = None,
        answered_within_s: float = _ANSWERED_WITHIN_S,
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._fulltext = fulltext
        self._readiness = readiness or IndexReadiness(IndexState())
        self._embedding, self._searching = Patience(answered_within_s), Patience(answered_within_s)
        self._away: set[str] = set()

    async def search(self, query: str, filter_: HardFilter, *, limit: int, may_degrade: bool) -> Searched:
        """Search under the hard filter, in the store while the index is away or not whole.

        Raises:
            Unavailable: a part is away and the caller would rather have no answer than a lesser one.
        """
        legs, degraded = await self._asked(query, filter_, limit=limit, may_degrade=may_degrade)
        try:
            candidates = joined(*await asyncio.gather(*legs))
        except Unavailable as error:
            degraded = (*degraded, self._is_away("vector", error, may_degrade=may_degrade))
            candidates = await self._fulltext.search(query, filter_, limit=limit)
            return Searched(candidates=candidates, backend=FULLTEXT_BACKEND, degraded=degraded)
        self._is_back("vector")
        return Searched(candidates=candidates, backend=INDEX_BACKEND, degraded=degraded)

    def count_tokens(self, text: str) -> int:
        """Count tokens as the embedder does."""
        return self._embedder.count_tokens(text)

    async def _asked(
        self, query: str, filter_: HardFilter, *, limit: int, may_degrade: bool
    ) -> tuple[list[Awaitable[Candidates]], tuple[str, ...]]:
        """Return what the index was asked, and why that is less than both legs.

        With a vector at hand it is one question. Else the index looks for the terms while the query is embedded.
        """
        vector = self._embedder.at_hand(query) if self._is_brief(query) else None
        if vector is not None:
            return [self._find(IndexQuery(dense=vector, text=query, limit=limit), filter_)], ()
        lexical = asyncio.ensure_future(self._find(IndexQuery(dense=None, text=query, limit=limit), filter_))
        lexical.add_done_callback(hear)
        try:
            vector, degraded = await self._vector(query, may_degrade=may_degrade)
        except BaseException:
            lexical.cancel()
            raise
        if vector is None:
            return [lexical], degraded
        return [lexical, self._find(IndexQuery(dense=vector, text=None, limit=limit), filter_)], degraded

    async def _find(self, asked: IndexQuery, filter_: HardFilter) -> Candidates:
        self._readiness.check_whole()
        return await self._searching.answer(lambda: self._index.search(asked, filter_))

    async def _vector(self, query: str, *, may_degrade: bool) -> tuple[Vector | None, tuple[str, ...]]:
        """Return the query's vector; or None, and why."""
        try:
            vector = await self._embedding.answer(lambda: self._embed(query))
        except Unavailable as error:
            return None, (self._is_away("embedder", error, may_degrade=may_degrade),)
        self._is_back("embedder")
        return vector, ()

    async def _embed(self, query: str) -> Vector:
        """Return the query's vector; of a query longer than a window, the mean of its chunks'."""
        chunks = [query] if self._is_brief(query) else self._embedder.chunks(query)[:_QUERY_CHUNKS]
        vectors = await self._embedder.embed(chunks)
        if len(vectors) == 1:
            return vectors[0]
        mean = [sum(values) / len(vectors) for values in zip(*vectors, strict=True)]
        length = sum(value * value for value in mean) ** 0.5 or 1.0
        return [value / length for value in mean]

    def _is_brief(self, query: str) -> bool:
        """Whether a query fits into one window, whatever its tokens are."""
        return query.isascii() and len(query) < self._embedder.window_tokens // 2

    def _is_away(self, part: str, error: Unavailable, *, may_degrade: bool) -> str:
        """Return what to tell; the log hears of it once."""
        reason = f"{part}: {error.detail}"
        if part not in self._away:
            self._away.add(part)
            log.warning("recall.degraded", part=part, reason=error.detail)
        if not may_degrade:
            raise Unavailable(f"recall would be degraded ({reason}), and on_degraded is fail") from error
        return reason

    def _is_back(self, part: str) -> None:
        if part in self._away:
            self._away.discard(part)
            log.info("recall.recovered", part=part)
