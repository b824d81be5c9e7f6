"""What is written and deleted, done to each shard there is: now, or once a shard that is being packed is open again.

Invariant: what it outdates is noted before, as of the time at which the change was asked for.
"""

from collections.abc import Callable, Sequence

from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.qdrant_edge.folder import Stored
from caisson.memory.adapters.qdrant_edge.work import remove, size, writes
from caisson.memory.adapters.restrictions import Restriction
from caisson.memory.domain.indexing import Point

Change = Callable[[Stored, float], int]
"""Makes a change that was asked for at a time (seconds of the epoch), and returns how many points it was of."""
Outdate = Callable[[Stored, int, float], None]


def writing(points: Sequence[Point], bm25: Bm25, outdate: Outdate) -> Change:
    """Return the writing of points; those of a later version replace others."""
    operations, replacing = writes(points, bm25), sum(point.version > 1 for point in points)

    def change(stored: Stored, at: float) -> int:
        outdate(stored, replacing, at)
        for operation in operations:
            stored.shard.update(operation)
        stored.loose += len(points)
        return len(points)

    return change


def removing(restriction: Restriction, outdate: Outdate) -> Change:
    """Return the deletion of what a restriction selects in each shard."""

    def change(stored: Stored, at: float) -> int:
        if points := size(stored.shard, restriction):
            outdate(stored, points, at)
            remove(stored.shard, restriction)
        return points

    return change
