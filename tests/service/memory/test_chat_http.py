"""The chat endpoint: asked with its key, in bounded batches; an answer in another form is none; nothing leaks."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.adapters.chat_http import HttpChat
from caisson.memory.domain.distillation import Text
from caisson.memory.domain.distilling import next_batch
from caisson.memory.engines import open_chat
from caisson.memory.settings import MemorySettings
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server

KEY, TEXT = "key-that-nobody-sees", "text that nobody sees"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with embeddings_server() as started:
        yield started


@pytest.fixture
async def chat(server: EmbeddingsServer) -> AsyncIterator[HttpChat]:
    opened = HttpChat.connect(f"{server.url}/v1/", "m", api_key=KEY, timeout_s=5)
    yield opened
    await opened.close()


def completion(content: str) -> tuple[int, str, str]:
    return 200, "", json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]})


async def test_texts_go_as_data_with_the_key_and_come_back_one_for_one(
    server: EmbeddingsServer, chat: HttpChat
) -> None:
    server.faults = [completion('Sure: ["shorter", null]')]
    assert await chat.reword("Shorten.", [TEXT, "drop"]) == ["shorter", None]
    assert server.headers[0].startswith("POST /v1/chat/completions ")
    assert f"authorization: bearer {KEY}" in server.headers[0].lower()
    [system, user] = server.requests[0]["messages"]
    assert TEXT not in system["content"]
    assert json.loads(user["content"]) == [TEXT, "drop"]


NO_ANSWERS = [
    ((401, "", TEXT), "status 401", "the key is wrong"),
    ((307, "Location: http://127.0.0.1:1/\r\n", ""), "status 307", "a redirect would take the key elsewhere"),
    ((200, "", "no JSON"), "not a completion", "something else"),
    (completion('["one"]'), "2 strings", "one text too few"),
    (completion(TEXT), "JSON array", "prose"),
    ((200, "", "x" * (5 << 20)), "no end", "an answer that goes on and on"),
]


@pytest.mark.parametrize(("answer", "told", "why"), NO_ANSWERS, ids=[row[2] for row in NO_ANSWERS])
async def test_what_is_not_one_text_per_text_is_unavailable(
    server: EmbeddingsServer, chat: HttpChat, answer: Any, told: str, why: str
) -> None:
    server.faults = [answer]
    with pytest.raises(Unavailable, match=told) as refused:
        await chat.reword("Shorten.", [TEXT, "drop"])
    assert TEXT not in str(refused.value), why
    assert KEY not in str(refused.value)


def test_one_call_of_the_model_holds_a_bounded_number_of_texts_and_characters() -> None:
    def candidates(*lengths: int) -> list[Text]:
        return [
            Text(position=at, text="x" * length, weight=1, vector=None, topic=None, selected=False)
            for at, length in enumerate(lengths)
        ]

    assert [text.position for text in next_batch(candidates(*[10] * 50))] == list(range(20))
    assert [text.position for text in next_batch(candidates(15_000, 10_000))] == [0]
    assert [text.position for text in next_batch(candidates(250_000, 10))] == [1], (
        "too long for a call: it stays as it is"
    )
    assert next_batch(candidates(250_000)) == []


HALVES = [
    {"chat_url": "http://127.0.0.1:1"},
    {"chat_model": "m"},
    {"chat_api_key": SecretStr(KEY)},
    {"chat_url": "http://127.0.0.1:1", "chat_api_key": SecretStr(KEY)},
]


@pytest.mark.parametrize("half", HALVES, ids=" and ".join)
def test_half_an_endpoint_is_no_endpoint_and_refuses_to_start(half: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured, match="MEMORY_CHAT_URL and MEMORY_CHAT_MODEL"):
        open_chat(MemorySettings.model_construct(**half))
