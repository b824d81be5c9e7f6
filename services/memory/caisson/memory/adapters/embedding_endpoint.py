"""Requests to an embeddings endpoint, with retries. Invariant: no text and no key is in an error or a log line."""

import asyncio
import random
from dataclasses import dataclass

import httpx

from caisson.common.errors import TimedOut, Unavailable

_ATTEMPTS = 4
_LONGEST_PAUSE_S = 10.0
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A failed attempt: whether another one is pointless, and how long the endpoint asks to wait."""

    error: Unavailable
    final: bool = False
    asked_s: float = 0.0


class EmbeddingEndpoint:
    """The address of embeddings below `url`, which may or may not end with `/v1`."""

    def __init__(self, client: httpx.AsyncClient, url: str, *, first_pause_s: float = 0.25) -> None:
        self._client = client
        self._url = _address(url)
        self._first_pause_s = first_pause_s

    async def post(self, body: dict[str, object]) -> bytes:
        """Return the answer to a request; raises Unavailable when it fails for good."""
        attempts = 0
        while True:
            answer = await self._attempt(body)
            if isinstance(answer, bytes):
                return answer
            attempts += 1
            pause_s = max(answer.asked_s, self._first_pause_s * 2**attempts * random.uniform(0.5, 1))  # noqa: S311
            if answer.final or attempts == _ATTEMPTS or pause_s > _LONGEST_PAUSE_S:
                raise answer.error
            await asyncio.sleep(pause_s)

    async def _attempt(self, body: dict[str, object]) -> bytes | _Failed:
        try:
            response = await self._client.post(self._url, json=body)
        except httpx.TimeoutException:
            return _Failed(error=TimedOut("the embeddings endpoint did not answer in time"))
        except httpx.TransportError as error:
            return _Failed(error=Unavailable(f"the embeddings endpoint cannot be reached: {type(error).__name__}"))
        if response.is_success:
            return response.content
        return _Failed(
            error=Unavailable(f"the embeddings endpoint answers with status {response.status_code}"),
            final=response.status_code not in _RETRIED,
            asked_s=_seconds(response.headers.get("Retry-After")),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _address(url: str) -> str:
    base = url.rstrip("/")
    if base.endswith("/embeddings"):
        return base
    return f"{base}/embeddings" if base.endswith("/v1") else f"{base}/v1/embeddings"


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 0))
    except ValueError:  # a date
        return 0.0
