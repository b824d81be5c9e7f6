"""An embedder that remembers its last vectors: what a write compares and what it indexes is embedded once.

Invariant: after `forget`, nothing of what was embedded before is held.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from caisson.memory.domain.indexing import Embedder, Vector

_KEPT = 512
_BATCH = 64


class RecentEmbeddings:
    """The domain's `Embedder` around another one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.identity = embedder.identity
        self.window_tokens = embedder.window_tokens
        self._recent: OrderedDict[bytes, Vector] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, made now where none is remembered."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        found = {key: self._recent[key] for key in keys if key in self._recent}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        wanted = list(missing.items())
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            vectors = await self._embedder.embed([text for _, text in batch])
            found |= {key: vector for (key, _), vector in zip(batch, vectors, strict=True)}
        self._keep(found)
        return [found[key] for key in keys]

    def at_hand(self, text: str) -> Vector | None:
        """Return what the embedder inside has at hand."""
        return self._embedder.at_hand(text)

    def chunks(self, text: str) -> list[str]:
        """Cut a text as the embedder inside does."""
        return self._embedder.chunks(text)

    def count_tokens(self, text: str) -> int:
        """Count tokens as the embedder inside does."""
        return self._embedder.count_tokens(text)

    def forget(self) -> None:
        """Hold nothing any more."""
        self._recent.clear()

    def _keep(self, vectors: dict[bytes, Vector]) -> None:
        self._recent |= vectors
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
