"""An embeddings endpoint that fails in every way: retried where that may help, plain otherwise, and nothing leaks."""

import json
import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from caisson.common.errors import TimedOut, Unavailable
from caisson.memory.adapters.embedding_endpoint import EmbeddingEndpoint
from caisson.memory.adapters.embedding_http import HttpEmbedder
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.memory_points import DIMENSIONS, vector_of

KEY, TEXT = "key-that-nobody-sees", "text that nobody sees"

Fault = tuple[int, str, str]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with embeddings_server() as started:
        yield started


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[HttpEmbedder]:
    client = httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=5)
    opened = HttpEmbedder(
        EmbeddingEndpoint(client, server.url, first_pause_s=0.001), model="m", dimensions=DIMENSIONS
    )
    yield opened
    await opened.close()


def rows(*embeddings: list[float]) -> Fault:
    data = [{"index": at, "embedding": embedding} for at, embedding in enumerate(embeddings)]
    return 200, "", json.dumps({"data": data})


MENDED = [
    ([(429, "Retry-After: 0\r\n", "")], "asked to come again"),
    ([(429, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", "")], "with a date"),
    ([(500, "", ""), (502, "", ""), (503, "", "")], "three faults, then an answer"),
]


@pytest.mark.parametrize(("faults", "why"), MENDED, ids=[row[1] for row in MENDED])
async def test_passing_faults_are_retried(
    server: EmbeddingsServer, embedder: HttpEmbedder, faults: list[Fault], why: str
) -> None:
    server.faults = list(faults)
    assert await embedder.embed([TEXT]) == [pytest.approx(vector_of(TEXT))], why
    assert len(server.requests) == len(faults) + 1


FAILED = [
    ([(503, "", TEXT)] * 4, 4, "status 503", "it does not pass"),
    ([(401, "", TEXT)], 1, "status 401", "no retry gives a key"),
    ([(400, "", TEXT)], 1, "status 400", "nor makes a bad request good"),
    ([(429, "Retry-After: 3600\r\n", "")], 1, "status 429", "an hour is no pause"),
    ([(200, "", "<html>")], 1, "something else", "not JSON"),
    ([(200, "", '{"data": [{"index": 0}]}')], 1, "something else", "no embedding"),
    ([rows()], 1, "0 vectors for 1 texts", "too few"),
    ([rows([1.0], [1.0])], 1, "2 vectors for 1 texts", "too many"),
    ([rows([1.0] * 8)], 1, "8 dimensions, the index 32", "another model"),
    ([rows([float("nan")] * DIMENSIONS)], 1, "not finite", "not a number"),
    ([rows([0.0] * DIMENSIONS)], 1, "no direction", "all zero"),
]


@pytest.mark.parametrize(("faults", "requests", "told", "why"), FAILED, ids=[row[3] for row in FAILED])
async def test_lasting_faults_are_told_without_text_or_key(
    server: EmbeddingsServer,
    embedder: HttpEmbedder,
    caplog: pytest.LogCaptureFixture,
    faults: list[Fault],
    requests: int,
    told: str,
    why: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults = list(faults)
    with pytest.raises(Unavailable) as failed:
        await embedder.embed([TEXT])
    assert told in failed.value.detail, why
    assert len(server.requests) == requests
    seen = caplog.text + repr(failed.value) + repr(failed.value.__cause__)
    assert KEY not in seen
    assert TEXT not in seen


async def test_an_endpoint_that_is_away_or_silent_is_unavailable(server: EmbeddingsServer) -> None:
    for timeout, url, kind in ((5.0, "http://127.0.0.1:1", Unavailable), (1e-6, server.url, TimedOut)):
        endpoint = EmbeddingEndpoint(httpx.AsyncClient(timeout=timeout), url, first_pause_s=0.001)
        with pytest.raises(kind):
            await HttpEmbedder(endpoint, model="m", dimensions=DIMENSIONS).embed([TEXT])
        await endpoint.close()


async def test_many_texts_go_in_batches_to_the_one_address(server: EmbeddingsServer) -> None:
    for url in (server.url, f"{server.url}/v1", f"{server.url}/v1/", f"{server.url}/v1/embeddings"):
        embedder = HttpEmbedder.connect(url, model="m", dimensions=DIMENSIONS, api_key=KEY)
        texts = [f"text {n}" for n in range(70)]
        assert await embedder.embed(texts) == [pytest.approx(vector_of(text)) for text in texts]
        await embedder.close()
    assert [len(asked["input"]) for asked in server.requests] == [32, 32, 6] * 4
    assert all(head.startswith("POST /v1/embeddings ") for head in server.headers)
    assert all(f"Authorization: Bearer {KEY}" in head for head in server.headers)
