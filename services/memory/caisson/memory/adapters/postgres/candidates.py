"""The texts of unfinished distillations. Deleting a memory reaches them; a finished job keeps only its selection."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.rows import Row
from caisson.memory.domain.distillation import Text
from caisson.memory.domain.hashing import content_hash
from caisson.memory.domain.indexing import Vector
from caisson.memory.domain.principals import Principal


class PostgresCandidates:
    """The domain's `Candidates`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def add(self, job_id: str, principal: Principal, texts: Sequence[str]) -> None:
        """Keep the candidates of a new job."""
        await self._do(
            self._sql.add_candidates,
            job_id,
            positions=list(range(len(texts))),
            texts=list(texts),
            hashes=[content_hash(principal.tenant, text) for text in texts],
        )

    async def read(self, job_id: str) -> list[Text]:
        """Return the candidates that are left, in their order."""
        async with acquire(self._pool) as connection:
            return [_text(row) for row in await fetch_all(self._sql.candidates(connection, job=job_id))]

    async def drop(self, job_id: str, positions: Sequence[int]) -> None:
        """Drop candidates."""
        await self._do(self._sql.drop_candidate_positions, job_id, positions=list(positions))

    async def weigh(self, job_id: str, weights: Mapping[int, int]) -> None:
        """Keep how many candidates each stands for."""
        await self._do(self._sql.weigh_candidates, job_id, positions=list(weights), weights=list(weights.values()))

    async def embed(self, job_id: str, vectors: Mapping[int, Vector]) -> None:
        """Keep vectors by position."""
        packed = [np.asarray(vector, dtype=np.float32).tobytes() for vector in vectors.values()]
        await self._do(self._sql.embed_candidates, job_id, positions=list(vectors), vectors=packed)

    async def sort(self, job_id: str, topics: Mapping[int, int]) -> None:
        """Keep topics by position."""
        await self._do(self._sql.sort_candidates, job_id, positions=list(topics), topics=list(topics.values()))

    async def select(self, job_id: str, positions: Sequence[int]) -> None:
        """Mark the selection."""
        await self._do(self._sql.select_candidates, job_id, positions=list(positions))

    async def reword(self, job_id: str, principal: Principal, texts: Mapping[int, str]) -> None:
        """Replace texts by position."""
        await self._do(
            self._sql.reword_candidates,
            job_id,
            positions=list(texts),
            texts=list(texts.values()),
            hashes=[content_hash(principal.tenant, text) for text in texts.values()],
        )

    async def _do(self, statement: Any, job_id: str, **values: Any) -> None:
        async with acquire(self._pool) as connection:
            await statement(connection, job=job_id, **values)


def _text(row: Row) -> Text:
    packed = row["vector"]
    return Text(
        position=row["position"],
        text=row["text"],
        weight=row["weight"],
        vector=None if packed is None else np.frombuffer(packed, dtype=np.float32).tolist(),
        topic=row["topic"],
        selected=row["selected"],
    )
