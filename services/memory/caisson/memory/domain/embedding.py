"""With which embedder the index is made."""

from typing import Protocol

from caisson.common.errors import Misconfigured
from caisson.memory.domain.indexing import EmbedderIdentity


class Embeddings(Protocol):
    """Which embedder the index was made with."""

    async def embedding(self) -> EmbedderIdentity | None:
        """Return what the index was made with; None where there is none yet."""

    async def embed_with(self, identity: EmbedderIdentity) -> None:
        """From now on this embedder is the index's; every memory made with another waits in the outbox."""


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


def _told(identity: EmbedderIdentity | None) -> str:
    if identity is None:
        return "none"
    return f"{identity.name} ({identity.dimensions} dimensions, {identity.digest})"
