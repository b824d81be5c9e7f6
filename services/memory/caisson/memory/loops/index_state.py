"""Watches how the index stands: has memories embedded again where it was lost, and ends that once nothing is left."""

import asyncio
from time import monotonic
from typing import Protocol

import structlog
from prometheus_client import Gauge

from caisson.common.errors import Unavailable
from caisson.common.health import Progress
from caisson.memory.domain.embedding import Embeddings, IndexReadiness, take_over
from caisson.memory.domain.indexing import EmbedderIdentity
from caisson.memory.loops.trouble import TROUBLE

LEFT = Gauge("caisson_memory_reembedding_left", "Memories that are left to be embedded again; searches are degraded")
_LOG_EVERY_S = 10.0

log = structlog.get_logger(__name__)


class Watched(Protocol):
    """An index that may be lost, and keeps what earlier embedders wrote until it is whole itself."""

    async def count(self) -> int:
        """Return the number of points."""

    async def drop_older(self) -> None:
        """Remove that."""


class IndexStateWatch:
    """Tells the replica's searches how the index stands, at most a poll late."""

    def __init__(
        self,
        embeddings: Embeddings,
        identity: EmbedderIdentity,
        index: Watched,
        *,
        readiness: IndexReadiness,
        poll_s: float,
        progress: Progress,
    ) -> None:
        self._embeddings = embeddings
        self._identity = identity
        self._index = index
        self._readiness = readiness
        self._poll_s = poll_s
        self._progress = progress
        self._has_older = True
        self._told_at = float("-inf")

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            try:
                await self.look()
                self._progress.tick()
            except TROUBLE as error:
                log.warning("index_state.interrupted", error=repr(error))
            await asyncio.sleep(self._poll_s)

    async def look(self) -> None:
        """Look once."""
        if await self._embeddings.finish(self._identity.digest):
            log.info("reembedding.done")
        state = await self._embeddings.state(self._identity.digest)
        if state.is_current and state.is_whole and await self._is_lost():
            log.error("index.lost")
            state = (await take_over(self._embeddings, self._identity, is_empty=True)).state
        self._readiness.state = state
        LEFT.set(state.left)
        if state.is_current and state.is_whole:
            await self._drop_older()
        elif monotonic() - self._told_at > _LOG_EVERY_S:
            self._told_at = monotonic()
            log.info("reembedding.goes_on", left=state.left, is_ours=state.is_current)

    async def _is_lost(self) -> bool:
        """Whether the index came back empty, as an engine's that was started anew and found none."""
        try:
            is_empty = await self._embeddings.has_points() and await self._index.count() == 0
        except Unavailable:
            return False
        # Asked again, for the last memory may have been deleted in between.
        return is_empty and await self._embeddings.has_points()

    async def _drop_older(self) -> None:
        if self._has_older:
            await self._index.drop_older()
            self._has_older = False
