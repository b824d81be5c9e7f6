"""The embedded engine over its folder. Everything here blocks, and every method may be called by any thread.

Invariant: what was deleted or replaced is noted as stale on disk before it happens, and a copy drops it from every
file within the time allowed. What remains is copied into a new shard, page by page, and the new shard is packed by
another process: the engine's own `optimize()` keeps the interpreter for its whole length (seconds at 100,000 points).
"""

import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self

from caisson.common.errors import Unavailable
from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.heap import return_memory
from caisson.memory.adapters.qdrant_edge.changes import Change, removing, writing
from caisson.memory.adapters.qdrant_edge.folder import ShardFolder, Stored
from caisson.memory.adapters.qdrant_edge.wire import PAGE_POINTS, Found, Offset
from caisson.memory.adapters.qdrant_edge.work import by_likeness, by_terms, copied, scrolled, size
from caisson.memory.adapters.restrictions import Restriction
from caisson.memory.domain.indexing import Point

_FLUSHED_POINTS = 4_096
_RELEASED_POINTS = 512
_PACKED = 2_000

Legs = tuple[Found | None, Found | None, int]


class Engine:
    """The shard in force of a folder, and during a copy the one that will be."""

    def __init__(
        self, folder: ShardFolder, stored: Stored, *, erase_within_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._next: Stored | None = None
        self._late: list[tuple[Change, float]] | None = None
        self._erase_within_s = erase_within_s
        self._clock = clock
        self._bm25 = Bm25()
        self._writing = Lock()
        self._optimizing = Lock()
        self._closed = False
        self._unflushed = 0

    @classmethod
    def open(cls, path: Path, stamp: dict[str, Any], rebuild: bool, erase_within_s: float) -> Self:  # noqa: FBT001
        """Open or create the folder's shard; raises Misconfigured."""
        folder = ShardFolder(path, stamp)
        engine = cls(folder, folder.open(rebuild=rebuild), erase_within_s=erase_within_s)
        folder.release_pages()
        return engine

    def search(self, dense: "array[float] | None", text: str | None, restriction: Restriction, limit: int) -> Legs:
        """Return what each leg found, None for one that did not run, and the number of the query's terms."""
        shard = self._stored.shard
        terms = self._bm25.query(text or "")
        likely = None if dense is None else by_likeness(shard, dense.tolist(), restriction, limit)
        lexical = by_terms(shard, terms, restriction, limit) if terms.indices else None
        return likely, lexical, len(terms.indices)

    def stored(
        self, restriction: Restriction | None, offset: Offset | None, limit: int
    ) -> tuple[list[tuple[str, str, int]], Offset | None]:
        """Return (tenant, memory id, version) of a page of points, and where the next page begins."""
        return scrolled(self._stored.shard, restriction, offset, limit)

    def size(self) -> int:
        """Return the number of points."""
        return size(self._stored.shard)

    def write(self, points: Sequence[Point]) -> None:
        """Write a page of points, whose vectors are sound."""
        self._change(writing(points, self._bm25, self._outdate))

    def remove(self, restriction: Restriction) -> None:
        """Delete what a restriction selects."""
        self._change(removing(restriction, self._outdate))

    def optimize(self) -> bool:
        """Flush; copy what remains into a new shard when much is stale or loose, or anything stale for too long.

        Returns False where the new shard could not be packed: then it is copied once more and left loose, and packing
        waits until as much is loose again. Raises Unavailable where the disk has no room for a copy.
        """
        with self._optimizing:
            with self._writing:
                if self._unflushed:
                    self._flush()
            is_due = self._stored.is_due(self.size(), self._clock(), erase_within_s=self._erase_within_s)
            is_packed = not is_due or self._copy()
            if not is_packed:
                self._copy(packed=False)
            self._folder.release_pages()
        return is_packed

    def close(self) -> None:
        """Flush and let go. Nothing is written afterwards."""
        with self._writing:
            self._closed = True
            self._stored.shard.close()
            self._folder.note(self._stored)

    def _copy(self, *, packed: bool = True) -> bool:
        """Copy what remains and take the copy over; return False where that failed because it could not be packed."""
        self._folder.refuse_full(self._stored)
        fresh = self._folder.fresh()
        with self._writing:
            self._next = fresh
        try:
            offset = self._page(fresh, None)
            while offset is not None:
                offset = self._page(fresh, offset)
            if packed and size(fresh.shard) >= _PACKED and not self._pack(fresh):
                return False
            self._finish(fresh)
        finally:
            with self._writing:
                self._next = self._late = None
            if self._stored is not fresh:
                self._folder.abandon(fresh)
            return_memory()
        return True

    def _page(self, fresh: Stored, offset: Offset | None) -> Offset | None:
        began = time.perf_counter()
        with self._writing:
            self._refuse_closed()
            following = copied(self._stored.shard, fresh.shard, offset)
            self._flush_often(PAGE_POINTS)
        # As long a pause for those who search and write: the engine keeps the interpreter while it writes.
        time.sleep(time.perf_counter() - began)
        return following

    def _pack(self, fresh: Stored) -> bool:
        """Have the new shard packed; what changes meanwhile is kept for when it is open again."""
        with self._writing:
            self._refuse_closed()
            self._flush()
            self._next, self._late = None, []
        return self._folder.pack(fresh)

    def _finish(self, fresh: Stored) -> None:
        with self._writing:
            self._refuse_closed()
            for change, at in self._late or ():
                change(fresh, at)
            fresh.shard.flush()
            self._folder.put_in_force(fresh)
            self._stored, self._next, self._late, self._unflushed = fresh, None, None, 0

    def _change(self, change: Change) -> None:
        with self._writing:
            at = self._clock()
            points = [change(stored, at) for stored in self._all()]
            if self._late is not None:
                self._late.append((change, at))
            self._flush_often(max(points))

    # What is called with the lock on writing held.

    def _all(self) -> list[Stored]:
        self._refuse_closed()
        return [self._stored, self._next] if self._next else [self._stored]

    def _outdate(self, stored: Stored, points: int, at: float) -> None:
        if not stored.outdate(points, at) or stored is not self._stored:
            return
        try:
            self._folder.note(stored)
        except OSError:
            # The change is refused, and the next attempt has to be noted.
            stored.stale, stored.stale_since = 0, None
            raise

    def _flush_often(self, points: int) -> None:
        """Keep flushes short: the engine keeps the interpreter meanwhile."""
        self._unflushed += points
        if self._unflushed >= _FLUSHED_POINTS:
            self._flush()
        if self._unflushed // _RELEASED_POINTS != (self._unflushed - points) // _RELEASED_POINTS:
            self._folder.release_pages()

    def _flush(self) -> None:
        for stored in self._all():
            stored.shard.flush()
        self._unflushed = 0
        self._folder.note(self._stored)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Unavailable("the index is closed")
