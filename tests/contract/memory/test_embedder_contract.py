"""Whatever embeds: one finite unit vector per text, the same every time, in order; windows lose nothing and fit."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput
from caisson.memory.adapters.embedding_http import HttpEmbedder
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.wordllama import WordLlama
from caisson.memory.domain.indexing import Embedder
from tests.support.embeddings_server import embeddings_server
from tests.support.memory_points import DIMENSIONS

WORDS = [word for line in Path(__file__).read_text().splitlines() for word in line.split() if word.isascii()]


@pytest.fixture(scope="module", params=["minilm", "wordllama", "http"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "minilm":
        minilm = await MiniLm.load()
        yield minilm
        await minilm.close()
    elif request.param == "wordllama":
        yield await WordLlama.load()
    else:
        async with embeddings_server() as server:
            http = HttpEmbedder.connect(server.url, model="m", dimensions=DIMENSIONS, api_key=None)
            yield http
            await http.close()


TEXTS = ["The ferry leaves at nine.", "我喜欢吃苹果", "ß", "a", "🙂", "word " * 200, "CN-A10293", "Где ключ?"]


async def test_vectors_are_finite_of_length_one_and_in_order(embedder: Embedder) -> None:
    together = np.array(await embedder.embed(TEXTS))
    assert together.shape == (len(TEXTS), embedder.identity.dimensions)
    assert np.isfinite(together).all()
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    alone = np.array([(await embedder.embed([text]))[0] for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-5), "what else is embedded does not matter, nor does the time"
    assert await embedder.embed([]) == []


async def test_the_identity_names_model_length_and_digest(embedder: Embedder) -> None:
    identity = embedder.identity
    assert identity.name
    assert len(bytes.fromhex(identity.digest)) == 32
    assert len((await embedder.embed(["one"]))[0]) == identity.dimensions


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b", "\u00ad\ufeff"], ids=ascii)
async def test_a_text_without_content_is_refused(embedder: Embedder, text: str) -> None:
    with pytest.raises(InvalidInput, match="without content"):
        await embedder.embed(["sound", text])


async def test_a_text_over_a_window_is_refused_with_both_numbers(embedder: Embedder) -> None:
    text = "buoy " * (embedder.window_tokens + 1)
    with pytest.raises(InvalidInput) as refused:
        await embedder.embed([text])
    assert str(embedder.window_tokens) in refused.value.detail


LONG = [
    (" ".join(WORDS[n * 7 % len(WORDS)] for n in range(40_000)) + ". The vault is at pier nine.", "40,000 words"),
    ("x" * 1_000_000, "one token of a megabyte"),
    ("苹果和梨。" * 8_000, "no spaces"),
    ("เรือออกเก้าโมง" * 2_000, "no spaces and no full stops"),
    ("\n" * 100_000 + "end", "hardly a word"),
]


@pytest.mark.parametrize(("text", "why"), LONG, ids=[row[1] for row in LONG])
async def test_a_long_text_is_cut_into_windows_that_fit_and_lose_nothing(
    embedder: Embedder, text: str, why: str
) -> None:
    chunks = embedder.chunks(text)
    assert "".join(chunks) == text, why
    assert max(embedder.count_tokens(chunk) for chunk in chunks[:50]) <= embedder.window_tokens
    assert len(await embedder.embed(chunks[-2:])) == min(2, len(chunks))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=120), max_size=30), st.sampled_from(" \n"))
def test_windows_of_any_text_are_the_text_and_none_is_too_long(
    embedder: Embedder, words: list[str], space: str
) -> None:
    text = space.join(words) * 5
    chunks = embedder.chunks(text)
    assert "".join(chunks) == text
    assert all(embedder.count_tokens(chunk) <= embedder.window_tokens for chunk in chunks)


def test_windows_end_at_sentences_or_else_at_words(embedder: Embedder) -> None:
    sentences = [f"Crate {n} holds three coils of rope and a lamp. " for n in range(200)]
    assert all(chunk in "".join(sentences) and chunk.endswith(". ") for chunk in embedder.chunks("".join(sentences)))
    words = "rope " * 2_000
    assert all(chunk.endswith("rope ") for chunk in embedder.chunks(words))


async def test_embedding_leaves_the_loop_to_others(embedder: Embedder) -> None:
    late = 0.0

    async def watch() -> None:
        nonlocal late
        while True:
            began = monotonic()
            await asyncio.sleep(0)
            late = max(late, monotonic() - began)

    watching = asyncio.create_task(watch())
    began = monotonic()
    await embedder.embed(["buoy " * 100] * 4)
    took = monotonic() - began
    watching.cancel()
    assert late < max(0.05, took / 2)
