"""What a plane says to itself is no memory: its own recalls, refusals, pleasantries, and what tools print."""

import pytest

from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant, remember

FACT = "Ana lives in Oslo near the harbour"


async def test_what_a_recall_told_is_not_learned_fifty_times(plane: MemoryPlane) -> None:
    """M37. Recalled memories fed back as input are refused as an echo that names its memory, in every dress."""
    async with plane.asker(new_tenant()) as product:
        stored = await remember(product, FACT)
        asked = {"query": "where does Ana live", "session_id": "ses_1"}
        [hit] = (await product.post("/v1/memories/search", json=asked)).json()["hits"]
        context = (await product.post("/v1/memories/context", json=asked)).json()["text"]
        told = hit["memory"]["text"]
        dresses = [told, f"- {told}.", f'1. "{told}"', told.upper(), f"{told}\n{told}", context]
        provenance = {"kind": "run", "run_id": "run_1", "session_id": "ses_1"}
        for layer in ("semantic", "session"):
            body = [{"text": dresses[n % 6], "layer": layer, "provenance": provenance} for n in range(50)]
            results = (await product.post("/v1/memories", json={"memories": body})).json()["results"]
            assert {(result["status"], result["similar_to"]) for result in results} == {("rejected", stored)}
            assert all(result["reason"].startswith("echo") for result in results)
        assert [item["id"] for item in (await product.get("/v1/memories")).json()["items"]] == [stored]


async def test_a_recall_that_comes_back_without_its_session_adds_nothing(plane: MemoryPlane) -> None:
    """M37. Where nobody says which session it is, the same text is a duplicate, and a context is seen to be one."""
    async with plane.asker(new_tenant()) as product:
        stored = await remember(product, FACT)
        for n in range(10):
            told = (await product.post("/v1/memories/context", json={"query": "where does Ana live"})).json()["text"]
            again = (await product.post("/v1/memories", json={"text": FACT})).json()
            assert (again["status"], again["id"]) == ("duplicate_of", stored)
            echoed = (await product.post("/v1/memories", json={"text": f"{told}\n" * (n + 1)})).json()
            assert echoed["status"] == "rejected"
            assert echoed["reason"].startswith("echo")
        assert [item["id"] for item in (await product.get("/v1/memories")).json()["items"]] == [stored]


NOISE = [
    ("I'm sorry, but I can't help with that.", "refusal"),
    ("As an AI language model, I have no opinions.", "refusal"),
    ("ok thanks", "small talk"),
    ("👍", "small talk"),
    ("Process finished with exit code 0", "tool noise"),
    ('{"status": "ok"}', "tool noise"),
    ("Downloading 45% |████      | 3/10", "tool noise"),
    ("No relevant memories were found.", "refusal"),
    ("\u200b\u200b", "unprintable"),
    ("", "empty"),
]


@pytest.mark.parametrize(("text", "reason"), NOISE, ids=[ascii(row[0]) for row in NOISE])
async def test_noise_is_refused_with_its_reason(desk: Desk, text: str, reason: str) -> None:
    """M37. Refusals, pleasantries and tool noise are answered `rejected` with why, and leave no row."""
    [result] = await desk.remember(text)
    assert (result.status, result.id) == ("rejected", None)
    assert (result.reason or "").startswith(reason)
    assert await desk.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1") == []
