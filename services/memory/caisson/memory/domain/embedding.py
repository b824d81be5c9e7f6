"""With which embedder the index is made, and whether it is whole.

Invariant: of replicas with different embedders only those write that have the index's; and a search in an index that
is not whole, or is another embedder's, is not told as a whole one.
"""

from dataclasses import dataclass
from typing import Protocol

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.domain.indexing import EmbedderIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How the index stands: whether it is this embedder's, whole, and how many memories are left to embed again."""

    is_current: bool = True
    is_whole: bool = True
    left: int = 0


class Embeddings(Protocol):
    """Which embedder the index is made with."""

    async def embedding(self) -> EmbedderIdentity | None:
        """Return what the index is made with; None where there is none yet."""

    async def has_points(self) -> bool:
        """Whether the store believes that the index holds anything."""

    async def embed_with(self, identity: EmbedderIdentity, *, from_scratch: bool) -> None:
        """From now on this embedder is the index's, and the index is not whole.

        `from_scratch` takes every memory again, and not only what another one embedded.
        """

    async def enqueue(self) -> None:
        """Have all that is to be embedded again wait in the outbox; goes on where it was interrupted."""

    async def finish(self, embedder: str) -> bool:
        """Note that the index is whole if nothing is left; return whether it became so now."""

    async def state(self, embedder: str) -> IndexState:
        """Return how the index stands for a replica with this embedder, by its digest."""


class IndexReadiness:
    """How the index stood a moment ago."""

    def __init__(self, state: IndexState) -> None:
        self.state = state

    def check_whole(self) -> None:
        """Raise Unavailable unless a search finds all there is."""
        self.check_current()
        if not self.state.is_whole:
            raise Unavailable(f"memories are being embedded again, {self.state.left} are left")

    def check_current(self) -> None:
        """Raise Unavailable where another embedder took over the index."""
        if not self.state.is_current:
            raise Unavailable("another embedder has taken over the index; start this replica with that one")


async def refuse_other_embedder(embeddings: Embeddings, configured: EmbedderIdentity) -> None:
    """Hold the configured embedder against the index's.

    Raises:
        Misconfigured: naming both, where they differ.
    """
    known = await embeddings.embedding()
    if known not in {None, configured}:
        raise Misconfigured(
            f"the index was made with {_told(known)}, configured is {_told(configured)}; "
            "start once with --reembed to embed every memory again"
        )


async def take_over(embeddings: Embeddings, identity: EmbedderIdentity, *, is_empty: bool) -> IndexReadiness:
    """Let an embedder have the index, go on with what a process before began, and return how the index stands.

    An empty index of a store that believes it filled was lost: everything is embedded again.
    """
    is_lost = is_empty and await embeddings.has_points()
    if is_lost or await embeddings.embedding() != identity:
        await embeddings.embed_with(identity, from_scratch=is_lost)
    await embeddings.enqueue()
    await embeddings.finish(identity.digest)
    return IndexReadiness(await embeddings.state(identity.digest))


def _told(identity: EmbedderIdentity | None) -> str:
    if identity is None:
        return "none"
    return f"{identity.name} ({identity.dimensions} dimensions, {identity.digest})"
