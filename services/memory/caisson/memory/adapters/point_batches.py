"""The points of memories, and how many of them are written together."""

from collections.abc import Iterator, Sequence

from caisson.memory.domain.indexing import Point, Vector
from caisson.memory.domain.relaying import Due

_CHUNKS_PER_WRITE = 256

Chunked = tuple[Due, list[str]]
"""A memory and its text in pieces."""


def points_of(due: Due, texts: Sequence[str], vectors: Iterator[Vector]) -> Iterator[Point]:
    """Yield one point per piece, each with the next of the vectors; none where no points belong."""
    memory = due.memory
    for chunk, text in enumerate(texts):
        if memory is not None:
            yield Point(
                memory_id=due.memory_id,
                chunk=chunk,
                version=memory.version,
                tenant=due.tenant,
                scopes=memory.scopes,
                layer=memory.layer,
                valid_from=memory.valid_from,
                valid_to=memory.valid_to,
                expires_at=memory.expires_at,
                text=text,
                dense=next(vectors),
            )


def by_size(chunked: Sequence[Chunked]) -> Iterator[list[Chunked]]:
    """Yield batches of whole memories, each of few enough pieces or of one memory."""
    batch: list[Chunked] = []
    size = 0
    for item in chunked:
        if batch and size + len(item[1]) > _CHUNKS_PER_WRITE:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item[1])
    if batch:
        yield batch
