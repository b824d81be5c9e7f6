"""The threads around the embedded engine, and the shards that they use. Invariant: the event loop waits for neither.

One thread writes, so that writes have an order and a copy meets none half done; others read. The engine's own
`optimize()` is not used: it keeps the interpreter for its whole length (seconds at 100,000 points) and
doubles the memory. What deletions leave behind is dropped by copying the rest into a new shard, page by page.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

import qdrant_edge as edge

from caisson.common.errors import CaissonError, Unavailable
from caisson.memory.adapters.qdrant_edge_folder import ShardFolder
from caisson.memory.adapters.qdrant_edge_work import PAGE_POINTS, Offset, copied, remove, size
from caisson.memory.adapters.restrictions import Restriction
from caisson.memory.domain.indexing import EmbedderIdentity

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 3
_FLUSHED_POINTS = 4_096
_HOLES = 10_000
_HOLES_SHARE = 0.3


class EdgeEngine:
    """The shard in force of a folder, and during a copy the one that will be."""

    def __init__(self, folder: ShardFolder, shard: edge.EdgeShard) -> None:
        self._folder = folder
        self._shard = shard
        self._next: edge.EdgeShard | None = None
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="edge-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="edge-write")
        self._optimizing = asyncio.Lock()
        self._closed = False
        self._unflushed = 0

    @classmethod
    async def open(cls, path: Path, identity: EmbedderIdentity, *, rebuild: bool) -> Self:
        """Open or create the folder's shard; raises Misconfigured."""
        folder = ShardFolder(path, identity)
        return cls(folder, await asyncio.to_thread(folder.open, rebuild=rebuild))

    async def compute(self, blocking: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something beside the loop; raises Unavailable for what the engine raises."""
        return await self._run(self._readers, partial(blocking, *args, **kwargs))

    async def read(
        self, blocking: Callable[Concatenate[edge.EdgeShard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read from the shard in force."""
        return await self.compute(blocking, self._shard, *args, **kwargs)

    async def write(self, operation: edge.UpdateOperation) -> None:
        """Apply an operation, after those before it."""
        await self._run(self._writer, partial(self._update, operation))

    async def remove(self, restriction: Restriction) -> None:
        """Delete what a restriction selects."""
        await self._run(self._writer, partial(self._remove, restriction))

    async def optimize(self) -> None:
        """Flush; copy into a new shard when much was deleted."""
        async with self._optimizing:
            if self._unflushed:
                await self._run(self._writer, self._flush)
            if self._folder.holes >= max(_HOLES, _HOLES_SHARE * await self.read(size)):
                await self._copy()

    async def close(self) -> None:
        """Flush, and let another process have the folder. Nothing answers afterwards."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._writer, self._let_go)
        self._writer.shutdown(wait=False)
        self._readers.shutdown(wait=False)

    async def _copy(self) -> None:
        await self._run(self._writer, self._begin)
        try:
            offset = await self._run(self._writer, partial(self._page, None))
            while offset is not None:
                offset = await self._run(self._writer, partial(self._page, offset))
            await self._run(self._writer, self._finish)
        finally:
            self._next = None

    # What runs in the writing thread.

    def _shards(self) -> list[edge.EdgeShard]:
        return [self._shard, self._next] if self._next else [self._shard]

    def _update(self, operation: edge.UpdateOperation) -> None:
        for shard in self._shards():
            shard.update(operation)
        self._flush_often(PAGE_POINTS)

    def _remove(self, restriction: Restriction) -> None:
        removed = remove(self._shard, restriction)
        if self._next:
            remove(self._next, restriction)
        self._folder.holes += removed
        self._flush_often(removed)

    def _flush_often(self, points: int) -> None:
        """Keep flushes short: the engine keeps the interpreter meanwhile."""
        self._unflushed += points
        if self._unflushed >= _FLUSHED_POINTS:
            self._flush()

    def _flush(self) -> None:
        for shard in self._shards():
            shard.flush()
        self._unflushed = 0
        self._folder.note()

    def _begin(self) -> None:
        self._next = self._folder.fresh()

    def _page(self, offset: Offset | None) -> Offset | None:
        following = copied(self._shard, self._next, offset) if self._next else None
        self._flush_often(PAGE_POINTS)
        return following

    def _finish(self) -> None:
        if self._next:
            self._flush()
            self._folder.put_in_force()
            self._shard, self._next = self._next, None

    def _let_go(self) -> None:
        self._shard.close()
        self._folder.note()
        self._folder.release()

    async def _run(self, pool: ThreadPoolExecutor, blocking: Callable[[], T]) -> T:
        if self._closed:
            raise Unavailable("the index is closed")
        return await asyncio.get_running_loop().run_in_executor(pool, _translated, blocking)


def _translated(blocking: Callable[[], T]) -> T:
    try:
        return blocking()
    except CaissonError:
        raise
    except BaseException as error:  # the engine raises bare exceptions, and its panics are no Exception
        raise Unavailable(f"the embedded index failed: {error}") from error
