"""Brings the index up with the store. Invariant: work is settled only after the index has its points.

Writing the same points twice changes nothing, so a crash at any line costs one repetition. What was embedded for so
long that another took the work over, or a deletion ended it, is not written.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from caisson.common.errors import InvalidInput, Unavailable
from caisson.common.ids import TenantId
from caisson.memory.adapters.point_batches import Chunked, by_size, points_of
from caisson.memory.adapters.recent_embeddings import RecentEmbeddings
from caisson.memory.domain.indexing import Index
from caisson.memory.domain.patience import answered_within
from caisson.memory.domain.relaying import Done, Due, IndexOutbox, Size

_ROUNDS_PER_LONG_TEXT = 4
_KEPT_EVERY_S = 5.0
_CAUGHT_UP_WITHIN_S = 8.0
_CERTAIN_WITHIN_S = 5.0
_CERTAIN_PAUSE_S = 0.05

log = structlog.get_logger(__name__)


class Indexer:
    """The domain's `Indexing`, and what the relay loop turns."""

    def __init__(
        self,
        outbox: IndexOutbox,
        embedder: RecentEmbeddings,
        index: Index,
        *,
        caught_up_within_s: float = _CAUGHT_UP_WITHIN_S,
    ) -> None:
        self._outbox = outbox
        self._embedder = embedder
        self._index = index
        self._caught_up_within_s = caught_up_within_s
        self._rounds = 0
        self._had_turn = dict.fromkeys(Size, "")

    async def relay(self, limit: int) -> int:
        """Do due work, tenants in turn, and return how much was done; raise Unavailable when index or embedder is.

        Of long texts it is one a round, after the brief ones: what comes meanwhile does not wait for all of them.
        While there are ever more brief ones, every fourth round has a long one, so that nothing waits for ever.
        """
        self._rounds += 1
        turns = [(Size.BRIEF, limit), (Size.LONG, 1)]
        for size, most in reversed(turns) if self._rounds % _ROUNDS_PER_LONG_TEXT == 0 else turns:
            if dues := await self._take(size, most):
                return await self._work(dues)
        return 0

    async def _take(self, size: Size, limit: int) -> list[Due]:
        dues = await self._outbox.lease(size, limit=limit, after=self._had_turn[size])
        if dues:
            self._had_turn[size] = dues[-1].tenant
        return dues

    async def catch_up(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Index these memories now if that is quick and the index is up; otherwise it is done later."""
        dues = await self._outbox.lease_these(tenant, memory_ids, size=Size.BRIEF)
        try:
            await answered_within(self._caught_up_within_s, self._work(dues))
        except Unavailable as error:
            log.warning("indexer.left_to_relay", reason=error.detail, memories=len(dues))

    async def replace(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Have the index show the newest version of these memories and nothing older.

        Returns:
            True once it does; False where the index is away or none of it could be done, and the relay will do it.
        """
        try:
            async with asyncio.timeout(_CERTAIN_WITHIN_S):
                while await self._outbox.waiting(tenant, memory_ids):
                    dues = await self._outbox.lease_these(tenant, memory_ids)
                    if dues and await self._work(dues) == 0:
                        return False
                    await asyncio.sleep(_CERTAIN_PAUSE_S)
        except (Unavailable, TimeoutError) as error:
            log.warning("indexer.replacement_left_to_relay", reason=repr(error), memories=len(memory_ids))
            return False
        return True

    async def remove(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Remove deleted memories from index and caches.

        Returns:
            True once no relay can bring a point back; False where the index is away and the relay will remove them.
        """
        self._embedder.forget()
        if not memory_ids:
            return True
        try:
            async with asyncio.timeout(_CERTAIN_WITHIN_S):
                while True:
                    await self._index.delete_memories(tenant, memory_ids)
                    if await self._outbox.settle_deleted(tenant, memory_ids) == 0:
                        return True
                    await asyncio.sleep(_CERTAIN_PAUSE_S)
        except (Unavailable, TimeoutError) as error:
            log.warning("indexer.removal_left_to_relay", reason=repr(error), memories=len(memory_ids))
            return False

    async def unremoved(self, tenant: TenantId) -> list[str]:
        """Return the deleted memories of a tenant whose points may still be there."""
        return await self._outbox.unremoved(tenant)

    async def is_done(self, tenant: TenantId, memory_ids: Sequence[str]) -> bool:
        """Whether nothing about these memories waits for the relay."""
        return not await self._outbox.waiting(tenant, memory_ids)

    async def _work(self, dues: Sequence[Due]) -> int:
        """Do what was taken, however long it takes, and return how much of it is settled; the rest is postponed."""
        keeping = asyncio.create_task(self._keep(dues))
        try:
            return await self._work_off(dues)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _keep(self, dues: Sequence[Due]) -> None:
        while True:
            await asyncio.sleep(_KEPT_EVERY_S)
            try:
                await self._outbox.keep(dues)
            except Unavailable as error:
                log.warning("indexer.not_kept", reason=error.detail, memories=len(dues))

    async def _work_off(self, dues: Sequence[Due]) -> int:
        batches = await self._batches(dues)
        done = 0
        for number, batch in enumerate(batches):
            try:
                done += await self._write(batch)
            except Unavailable as error:
                undone = [due for rest in batches[number:] for due, _ in rest]
                await self._outbox.postpone(undone, error=error.detail)
                raise
            except Exception as error:
                done += await self._isolate(batch, error)
        return done

    async def _isolate(self, batch: Sequence[Chunked], error: Exception) -> int:
        """One memory that cannot be indexed must not hold up the others."""
        if len(batch) > 1:
            return sum([await self._work_alone(item) for item in batch])
        due, texts = batch[0]
        try:
            if isinstance(error, InvalidInput) and (kept := await self._embeddable(texts)) != texts:
                return await self._write([(due, kept)])
        except Exception as cause:
            error = cause
        log.error("indexer.memory_failed", memory=due.memory_id, attempts=due.attempts, exc_info=error)
        await self._outbox.postpone([due], error=type(error).__name__)
        return 0

    async def _work_alone(self, item: Chunked) -> int:
        try:
            return await self._write([item])
        except Unavailable as away:
            await self._outbox.postpone([item[0]], error=away.detail)
            return 0
        except Exception as cause:
            return await self._isolate([item], cause)

    async def _embeddable(self, texts: Sequence[str]) -> list[str]:
        """Leave out what has no vector, such as a chunk of symbols alone."""
        kept = []
        for text in texts:
            try:
                await self._embedder.embed([text])
            except InvalidInput:
                continue
            kept.append(text)
        return kept

    async def _batches(self, dues: Sequence[Due]) -> list[list[Chunked]]:
        chunked = await asyncio.to_thread(lambda: [(due, self._chunks(due)) for due in dues])
        return list(by_size(chunked))

    def _chunks(self, due: Due) -> list[str]:
        return [] if due.memory is None else self._embedder.chunks(due.memory.text)

    async def _write(self, batch: Sequence[Chunked]) -> int:
        embedded = await self._embedder.embed([text for _, texts in batch for text in texts])
        held = await self._outbox.keep([due for due, _ in batch])
        if len(ours := [item for item in batch if item[0].lease in held]) < len(batch):
            log.info("indexer.taken_over", memories=len(batch) - len(ours))
            return await self._write(ours) if ours else 0
        vectors = iter(embedded)
        points = [point for due, texts in batch for point in points_of(due, texts, vectors)]
        stale: dict[TenantId, list[str]] = defaultdict(list)
        for due, texts in batch:
            if due.memory is None or due.memory.chunks > len(texts):
                stale[due.tenant].append(due.memory_id)
        for tenant, memory_ids in stale.items():
            await self._index.delete_memories(tenant, memory_ids)
        if points:
            await self._index.upsert(points)
        done = [Done(due=due, chunks=len(texts)) for due, texts in batch]
        await self._outbox.settle(done)
        return len(done)
