"""What becomes of what is said: one row per fact, however often and by however many at once."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from caisson.common.errors import InvalidInput, PayloadTooLarge
from caisson.common.memories import ById, NewMemory, Provenance
from tests.support.memory_desk import Desk


async def test_the_same_in_other_spelling_is_a_duplicate_that_names_its_memory(desk: Desk) -> None:
    first = await desk.store("The deploy port is 8080")
    [again] = await desk.remember("deploy port is 8080.")
    assert (again.status, again.id) == ("duplicate_of", first)


async def test_a_chain_of_facts_stays_one_line_under_concurrency(desk: Desk) -> None:
    fact: dict[str, Any] = {"subject": "Ana", "attribute": "city"}
    await asyncio.gather(*(desk.remember(f"Ana lives in city {n}", **fact) for n in range(12)))
    rows = await desk.rows(
        "SELECT memory_id, status, superseded_by, valid_from, valid_to FROM memory.memories"
        " WHERE tenant_id = $1 ORDER BY valid_from"
    )
    assert [row["status"] for row in rows] == ["superseded"] * 11 + ["active"]
    for earlier, later in pairwise(rows):
        assert (earlier["superseded_by"], earlier["valid_to"]) == (later["memory_id"], later["valid_from"])


async def test_a_fact_that_comes_late_goes_into_the_past(desk: Desk) -> None:
    fact: dict[str, Any] = {"subject": "Ana", "attribute": "manager"}
    now = desk.clock()
    await desk.store("Ana reports to Bo", valid_from=now - timedelta(days=10), **fact)
    current = await desk.store("Ana reports to Cy", valid_from=now - timedelta(days=1), **fact)
    await desk.remember("Ana reports to Di", valid_from=now - timedelta(days=5), **fact)
    assert await desk.search("Ana reports") == ["Ana reports to Cy"]
    assert await desk.search("Ana reports", as_of=now - timedelta(days=3)) == ["Ana reports to Di"]
    assert await desk.search("Ana reports", as_of=now - timedelta(days=8)) == ["Ana reports to Bo"]
    assert (await desk.get(current)).status == "active"


@pytest.mark.parametrize(
    ("values", "field", "why"),
    [
        ({"scopes": ["team:b"]}, "memories.0.scopes", "a scope that the caller has not"),
        ({"scopes": ["user:bo"]}, "memories.0.scopes", "another user's"),
        ({"scopes": ["team:"]}, "memories.0.scopes", "a prefix of one that it has"),
        ({"scopes": []}, "memories.0.scopes", "nobody's"),
        ({"scopes": [""]}, "memories.0.scopes", "an empty name"),
        ({"metadata": {"tenant_id": "b"}}, "memories.0.metadata.tenant_id", "metadata that claims a tenant"),
        ({"metadata": {"a": float("inf")}}, "memories.0.metadata", "no JSON"),
        ({"metadata": {"a": "\x00"}}, "memories.0.metadata", "no text for PostgreSQL"),
        ({"metadata": {"a": "x" * 20_000}}, "memories.0.metadata", "too much"),
        ({"tags": ["x" * 300]}, "memories.0.tags", "too long a tag"),
        ({"subject": "x" * 300}, "memories.0.subject", "too long a name"),
        ({"external_id": ""}, "memories.0.external_id", "an empty id"),
    ],
)
async def test_bad_input_names_its_field_and_stores_nothing(
    desk: Desk, values: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await desk.remember("Likes tea", caller=desk.caller("ana", "team:a"), **values)
    assert [item.field for item in caught.value.fields] == [field], why
    assert await desk.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1") == []


async def test_times_must_be_in_order_and_aware(desk: Desk) -> None:
    now = desk.clock()
    with pytest.raises(InvalidInput, match="valid_to must come after valid_from"):
        await desk.remember("Likes tea", valid_from=now, valid_to=now)
    with pytest.raises(ValueError, match="timezone"):
        NewMemory.model_validate_json('{"text": "Likes tea", "valid_from": "2026-03-01T10:00:00"}')
    same = [
        NewMemory.model_validate_json(f'{{"text": "at {n}", "valid_from": "{text}"}}')
        for n, text in enumerate(("2026-03-29T02:30:00+05:30", "2026-03-28T21:00:00Z"))
    ]
    assert {(await desk.get(result.id or "")).valid_from for result in await desk.remember(*same)} == {
        same[0].valid_from
    }


async def test_a_text_over_the_limit_is_refused_and_one_below_it_is_found_to_its_end(desk: Desk) -> None:
    with pytest.raises(PayloadTooLarge, match="262144"):
        await desk.remember("x" * (1 << 20))
    await desk.store("word " * 40_000 + "the vault code name is heliotrope")
    while await desk.indexer.relay(64):
        pass
    assert "heliotrope" in (await desk.search("heliotrope", token_budget=100_000))[0]


async def test_each_memory_of_a_batch_gets_its_own_answer(desk: Desk) -> None:
    results = await desk.remember("ok thanks", "Likes tea", "key AKIAIOSFODNN7EXAMPLE", "Likes tea", "Likes coffee")
    assert [result.status for result in results] == ["rejected", "created", "rejected", "duplicate_of", "created"]
    assert results[2].reason == "secret: the text holds an AWS access key"
    assert results[3].id == results[1].id


async def test_an_idempotent_write_is_one_row_after_a_restart_too(desk: Desk) -> None:
    episode: dict[str, Any] = {
        "layer": "episodic",
        "outcome": "succeeded",
        "provenance": Provenance(kind="run", run_id="run_7"),
        "external_id": "run_7:end",
    }
    first = await desk.store("Deployed v2", **episode)
    restarted = Desk(pool=desk.pool, index=desk.index, embedder=desk.embedder, clock=desk.clock, tenant=desk.tenant)
    [again] = await restarted.remember("Deployed v2", **episode)
    assert (again.status, again.id) == ("duplicate_of", first)


def _by_id(desk: Desk, id_: str | None, **values: Any) -> ById:
    return ById(caller=desk.caller(), id=id_ or "", **values)
