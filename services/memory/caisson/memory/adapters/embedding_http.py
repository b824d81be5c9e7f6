"""An embedder behind HTTP, as OpenAI's API has it. Invariant: what does not look like the model is refused.

Tokens are estimated, high rather than low: the endpoint does not tell how it counts.
"""

import re
from collections.abc import Sequence
from typing import Self

import httpx
from pydantic import BaseModel, ValidationError

from caisson.common.errors import InvalidInput, Unavailable
from caisson.memory.adapters.embedding_endpoint import EmbeddingEndpoint
from caisson.memory.adapters.model_files import digest
from caisson.memory.adapters.vectors import unit
from caisson.memory.domain.chunking import has_content, pack, units
from caisson.memory.domain.indexing import EmbedderIdentity, Vector

_PIPELINE = "openai-compatible embeddings, unit length"
_BATCH_TEXTS = 32
_RUN = re.compile(r"[^\W_]+|[^\s]")
_BYTES_PER_TOKEN = 3


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]


class HttpEmbedder:
    """A model behind HTTP. The identity is its name and length: the endpoint's own word for what it runs."""

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        *,
        model: str,
        dimensions: int,
        window_tokens: int = 512,
    ) -> None:
        self.identity = EmbedderIdentity(
            name=model, dimensions=dimensions, digest=digest(_PIPELINE, model, str(dimensions))
        )
        self.window_tokens = window_tokens
        self._endpoint = endpoint

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        model: str,
        dimensions: int,
        api_key: str | None,
        window_tokens: int = 512,
        timeout_s: float = 30,
    ) -> Self:
        """Return an embedder of the endpoint at `url`, with or without its `/v1`; nothing is sent yet."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(timeout_s, connect=5))
        endpoint = EmbeddingEndpoint(client, url)
        return cls(endpoint, model=model, dimensions=dimensions, window_tokens=window_tokens)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one unit vector per text.

        Raises:
            InvalidInput: when a text has no content, or is longer than a window.
            Unavailable: when the endpoint fails, again after retries, or answers with something else.
        """
        for text in texts:
            self._check(text)
        vectors: list[Vector] = []
        for at in range(0, len(texts), _BATCH_TEXTS):
            vectors.extend(await self._batch(list(texts[at : at + _BATCH_TEXTS])))
        return vectors

    def at_hand(self, _: str) -> Vector | None:
        """Return None: it takes a request."""

    def chunks(self, text: str) -> list[str]:
        """Cut a text into pieces of at most one window."""
        pieces = units(text)
        return pack(pieces, [_estimated(piece) for piece in pieces], self.window_tokens)

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return _estimated(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _check(self, text: str) -> None:
        if not has_content(text):
            raise InvalidInput("a text without content has no vector", field="text")
        if (tokens := _estimated(text)) > self.window_tokens:
            raise InvalidInput(f"the text has {tokens} tokens, a window {self.window_tokens}", field="text")

    async def _batch(self, texts: list[str]) -> list[list[float]]:
        answer = await self._endpoint.post({"model": self.identity.name, "input": texts, "encoding_format": "float"})
        try:
            rows = sorted(_Answer.model_validate_json(answer).data, key=lambda row: row.index)
        except ValidationError:
            raise Unavailable("the embeddings endpoint answers with something else than embeddings") from None
        if [row.index for row in rows] != list(range(len(texts))):
            raise Unavailable(f"the embeddings endpoint answers with {len(rows)} vectors for {len(texts)} texts")
        try:
            return unit([row.embedding for row in rows], self.identity.dimensions)
        except InvalidInput as error:
            raise Unavailable(f"the embeddings endpoint is not as configured: {error.detail}") from error


def _estimated(text: str) -> int:
    return sum(-(-len(run.encode(errors="replace")) // _BYTES_PER_TOKEN) for run in _RUN.findall(text))
