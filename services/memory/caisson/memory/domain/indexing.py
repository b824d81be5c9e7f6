"""What memory needs of a vector index and of an embedder. The index is derived from SQL, idempotent, rebuildable."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID, uuid5

from caisson.common.ids import TenantId
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter

_POINTS = UUID("6f1c2f0e-5a57-5d0b-9d55-5f3a0c8f4c11")

Vector = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One chunk of one memory as the index holds it.

    Active memories are indexed, and superseded ones with the end of their validity, for an `as_of` before it.
    `dense` has the embedder's length and is finite; `text` feeds the lexical leg. `version` is the memory's.
    """

    memory_id: str
    chunk: int
    version: int
    tenant: TenantId
    scopes: frozenset[str]
    layer: Layer
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    text: str
    dense: Vector

    @property
    def point_id(self) -> str:
        """UUIDv5 of tenant, memory and chunk."""
        return str(uuid5(_POINTS, f"{len(self.tenant)}:{self.tenant}:{self.memory_id}:{self.chunk}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """What is searched for: `dense` None skips the dense leg, `text` None the lexical one; at least one is given.

    `limit` counts memories per leg.
    """

    dense: Vector | None
    text: str | None
    limit: int
    dense_weight: float = 3.0
    sparse_weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that a leg found: its best chunk's scores (None where the leg did not return it) and fused rank score.

    `cosine` in [-1, 1], higher is nearer; `lexical` is the engine's BM25 score, at least 0; `fused` is
    weighted RRF, k = 2.
    """

    memory_id: str
    cosine: float | None
    lexical: float | None
    fused: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What the legs found, best fused first. `sparse_terms` counts the query's lexical terms (0: no help)."""

    found: list[Candidate]
    legs: tuple[str, ...]
    sparse_terms: int


class Index(Protocol):
    """A vector index with a lexical leg. Every method may raise `Unavailable`."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points; when it returns, a search sees them. Refuses vectors of another length or not finite."""

    async def delete_memories(self, tenant: TenantId, memory_ids: Sequence[str]) -> None:
        """Remove every chunk of these memories; an empty list removes nothing."""

    async def search(self, query: IndexQuery, filter_: HardFilter) -> Candidates:
        """Search under the hard filter, which stands in every leg and at the root."""

    def stored(
        self, tenant: TenantId | None = None, memory_ids: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[str, str, int]]:
        """Yield (tenant, memory id, version) of every point: of all tenants or one, of all or these memories."""

    async def count(self) -> int:
        """Return the number of points."""

    async def optimize(self) -> None:
        """Let the engine merge and index what it holds; searches go on meanwhile."""

    async def drop_older(self) -> None:
        """Remove what other embedders wrote and this one found when it was opened: nothing needs it any more."""

    async def check(self) -> None:
        """Raise Unavailable unless the engine answers now."""

    async def close(self) -> None:
        """Flush and let go of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderIdentity:
    """What a stored vector depends on: another identity means re-embedding everything."""

    name: str
    dimensions: int
    digest: str


class Embedder(Protocol):
    """Turns text into unit vectors."""

    identity: EmbedderIdentity
    window_tokens: int

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one finite unit vector per text, each at most one window long; raises Unavailable."""

    def at_hand(self, text: str) -> Vector | None:
        """Return the unit vector of a text of less than a window, None where that takes more than microseconds."""

    def chunks(self, text: str) -> list[str]:
        """Cut a text into pieces of at most one window, on sentence or word boundaries, losing nothing.

        It computes: a text of 256 KiB takes 30 ms, or 150 ms with no word twice, and belongs beside the event loop.
        """

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
