"""One fact is one memory, however often it is said; two facts are two, however near their words."""

import asyncio
from typing import Any

import asyncpg
import numpy as np
import pytest

from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.domain.near import PROPOSED_FROM
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, search

pytestmark = LOCAL_MODE_WARNINGS


async def test_twenty_at_once_make_one_memory_and_get_one_id(desk: Desk) -> None:
    """M31. Of twenty parallel writes of one text in one scope one creates, and all get the same id."""
    answers = await asyncio.gather(*(desk.remember("Lives in Oslo") for _ in range(20)))
    results = [result for answer in answers for result in answer]
    assert len({result.id for result in results}) == 1
    assert sorted(result.status for result in results) == ["created"] + ["duplicate_of"] * 19
    assert await desk.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1") == [(1,)]
    [other] = await desk.remember("Lives in Oslo", caller=desk.caller("bo"))
    assert other.status == "created", "another user's memory is another memory"


async def test_the_table_itself_holds_a_text_once(desk: Desk) -> None:
    """M31. Whoever writes around the service meets the same rule as a constraint."""
    await desk.store("Lives in Oslo")
    columns = [row["column_name"] for row in await desk.pool.fetch(_COLUMNS) if row["column_name"] != "memory_id"]
    named = ", ".join(columns)
    copy = (
        f"INSERT INTO memory.memories (memory_id, {named})"
        f" SELECT 'mem_copy', {named} FROM memory.memories WHERE tenant_id = $1"
    )
    with pytest.raises(asyncpg.UniqueViolationError, match="memories_once"):
        await desk.rows(copy)


_COLUMNS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = 'memory' AND table_name = 'memories' AND is_generated = 'NEVER'"
)

TWO_FACTS = [
    ("The deadline is 15 Oct", "The deadline is 16 Oct", "a day"),
    ("The service listens on port 8080", "The service listens on port 8081", "a port"),
    ("Ana likes olives", "Ana does not like olives", "a negation"),
    ("Alice manages Bob", "Bob manages Alice", "who does it to whom"),
    ("Ana prefers tea", "Ana's preferred drink is tea", "a true paraphrase: nearer by no measure of ours"),
]


async def test_no_cosine_tells_two_facts_from_one(minilm: MiniLm) -> None:
    """M36. All pairs are near enough to be proposed, and the one true paraphrase is not the nearest of them."""
    cosines = {}
    for one, two, why in TWO_FACTS:
        first, second = np.array(await minilm.embed([one, two]))
        cosines[why] = float(first @ second)
    assert min(cosines.values()) >= PROPOSED_FROM
    assert cosines["who does it to whom"] > cosines[TWO_FACTS[-1][2]] + 0.05


@pytest.mark.parametrize(("one", "two", "why"), TWO_FACTS, ids=[row[2] for row in TWO_FACTS])
async def test_near_facts_are_two_memories_on_every_engine(meaning_desk: Desk, one: str, two: str, why: str) -> None:
    """M36. The second is stored, names the first where likeness is known, and both are listed."""
    first = await meaning_desk.store(one)
    [second] = await meaning_desk.remember(two)
    assert second.status == "created", why
    assert second.similar_to == (None if meaning_desk.index.away else first)
    [again] = await meaning_desk.remember(two.upper())
    assert (again.status, again.id) == ("duplicate_of", second.id), "the same in capitals is the same"
    stored = await meaning_desk.rows("SELECT text FROM memory.memories WHERE tenant_id = $1 ORDER BY created_at")
    assert [row["text"] for row in stored] == [one, two]


async def test_the_answer_says_what_became_of_the_text(plane: MemoryPlane) -> None:
    """M36. `created` with 201 or `duplicate_of` with 200 and the id of the memory that says it; never just stored."""
    async with plane.asker(new_tenant()) as product:
        for one, two, why in TWO_FACTS:
            first = await product.post("/v1/memories", json={"text": one})
            second = await product.post("/v1/memories", json={"text": two})
            assert (first.status_code, second.status_code) == (201, 201), why
            assert (second.json()["status"], second.json()["similar_to"]) == ("created", first.json()["id"])
            again = await product.post("/v1/memories", json={"text": f"{one}."})
            assert (again.status_code, again.json()["status"]) == (200, "duplicate_of")
            assert again.json()["id"] == first.json()["id"]
        assert {"The deadline is 15 Oct", "The deadline is 16 Oct"} <= set(await search(product, "the deadline"))


EPISODE: dict[str, Any] = {
    "text": "Deployed v2 to production",
    "layer": "episodic",
    "outcome": "succeeded",
    "provenance": {"kind": "run", "run_id": "run_7"},
}


async def test_a_repeated_key_is_one_row_after_a_restart_too(plane: MemoryPlane) -> None:
    """M38. The same Idempotency-Key twice, and once more after both services started anew: one row, never a 409."""
    tenant = new_tenant()
    key = {"Idempotency-Key": f"episode of {tenant}"}
    async with plane.asker(tenant) as product:
        first = await product.post("/v1/memories", json=EPISODE, headers=key)
        again = await product.post("/v1/memories", json=EPISODE, headers=key)
    for process in (plane.gateway, plane.memory):
        await process.stop()
        await process.start()
    async with plane.asker(tenant) as product:
        later = await product.post("/v1/memories", json=EPISODE, headers=key)
        without = await product.post("/v1/memories", json=EPISODE)
    assert first.status_code == 201
    assert [(answer.status_code, answer.json()) for answer in (again, later)] == [(201, first.json())] * 2
    assert (without.status_code, without.json()["status"]) == (200, "duplicate_of"), "the same without a key"
    rows = await plane.store.fetch("SELECT memory_id FROM memory.memories WHERE tenant_id = $1", tenant)
    assert [row["memory_id"] for row in rows] == [first.json()["id"]]
