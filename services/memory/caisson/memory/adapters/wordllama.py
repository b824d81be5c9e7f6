"""WordLlama for tiny machines: the mean of its words' vectors, no network to run.

Its package is read and never imported: importing it configures the logging of the whole process.
"""

import asyncio
from collections.abc import Sequence
from typing import Self

import numpy as np
from safetensors.numpy import load
from tokenizers import Tokenizer

from caisson.memory.adapters.model_files import checked, digest
from caisson.memory.adapters.vectors import unit
from caisson.memory.adapters.windowing import Windows
from caisson.memory.domain.indexing import EmbedderIdentity, Vector

_WEIGHTS = "wordllama", "wordllama/weights/l2_supercat_256.safetensors"
_WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_TOKENIZER = "wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
_TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_PIPELINE = "units of 64 characters, mean, unit length"


class WordLlama:
    """The smallest embedder: 256 dimensions, microseconds a text, and half the understanding."""

    identity = EmbedderIdentity(
        name="wordllama-l2-supercat", dimensions=256, digest=digest(_WEIGHTS_SHA256, _TOKENIZER_SHA256, _PIPELINE)
    )
    window_tokens = 256

    def __init__(self, weights: bytes, tokenizer: bytes) -> None:
        self._rows = load(weights)["embedding.weight"]
        self._windows = Windows(Tokenizer.from_buffer(tokenizer), window=self.window_tokens, special=0)

    @classmethod
    async def load(cls) -> Self:
        """Read and check the package's files.

        Raises:
            Misconfigured: when a file is missing or another one.
        """
        return await asyncio.to_thread(
            lambda: cls(checked(*_WEIGHTS, _WEIGHTS_SHA256), checked(*_TOKENIZER, _TOKENIZER_SHA256))
        )

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one unit vector per text.

        Raises:
            InvalidInput: when a text has no token, or more than a window.
        """
        return await asyncio.to_thread(lambda: list(unit([self._mean(text) for text in texts], self._rows.shape[1])))

    def at_hand(self, text: str) -> Vector | None:
        """Return the unit vector of a text of less than a window."""
        return unit([self._mean(text)], self._rows.shape[1])[0]

    def chunks(self, text: str) -> list[str]:
        """Cut a text into pieces of at most one window."""
        return self._windows.chunks(text)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return self._windows.count(text)

    async def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _mean(self, text: str) -> list[float]:
        mean: list[float] = self._rows[self._windows.encode(text)].astype(np.float32).mean(axis=0).tolist()
        return mean
