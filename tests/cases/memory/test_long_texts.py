"""Long texts are cut and found to their end, or refused with the limit."""

from caisson.common.recalls import Search
from tests.support.eventually import eventually
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search

pytestmark = LOCAL_MODE_WARNINGS

LIMIT = 262_144
FACT = "The vault's code name is heliotrope."
WORDS = ("ford", "mill", "barn", "oast", "weir")
LONG = " ".join(WORDS[n * n % 5] for n in range(40_000)) + f". {FACT}"


async def test_a_fact_at_the_very_end_of_forty_thousand_words_is_found(plane: MemoryPlane) -> None:
    """M44. The memory is stored whole and cut into windows by us; what its last words say is found by meaning."""
    async with plane.asker(new_tenant()) as product:
        stored = await remember(product, LONG)

        async def is_found() -> bool:
            return await search(product, "what is the code name of the vault", token_budget=100_000) == [LONG]

        await eventually(is_found, within_s=60)
        receipt = (await product.delete(f"/v1/memories/{stored}")).json()
        assert receipt["vectors"] > 100
        assert receipt["complete"]


async def test_a_text_over_the_limit_is_refused_with_both_numbers(plane: MemoryPlane) -> None:
    """M44. A single token of 1 MB is a 422 that names field, size and limit, and nothing is stored."""
    async with plane.asker(new_tenant()) as product:
        token = "x" * (1 << 20)
        alone = await product.post("/v1/memories", json={"text": token})
        among = await product.post("/v1/memories", json={"memories": [{"text": "Likes tea"}, {"text": token}]})
        for answer, field in ((alone, "memories.0.text"), (among, "memories.1.text")):
            assert (answer.status_code, answer.json()["code"]) == (422, "payload_too_large")
            assert answer.json()["detail"] == f"{field} has {1 << 20} bytes; the limit is {LIMIT} (256 KiB)"
        assert (await product.get("/v1/memories")).json()["items"] == []
        asked = await product.post("/v1/memories/search", json={"query": token})
        assert asked.status_code == 422
        assert "8000" in asked.text


async def test_the_longest_single_token_is_stored_and_harms_nobody(meaning_desk: Desk) -> None:
    """M44. A token without a space, up to the limit, goes through the embedder in windows of its own."""
    token = "x" * (LIMIT // 4)
    [stored] = await meaning_desk.remember(token)
    assert stored.status == "created"
    await meaning_desk.store("Likes tea")
    while not meaning_desk.index.away and await meaning_desk.indexer.relay(64):
        pass
    assert await meaning_desk.search("likes tea") == ["Likes tea"]
    told = await meaning_desk.recall.search(
        Search(caller=meaning_desk.caller(), query=token[:64], token_budget=100_000)
    )
    assert token in [hit.memory.text for hit in told.hits] or told.diagnostics.backend == "sql_bm25"
