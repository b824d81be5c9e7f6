"""Whoever asks, however, and whatever goes on meanwhile: nothing is told that the hard filter does not admit."""

import asyncio
import json
import random
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput, NotFound
from caisson.common.ids import TenantId
from caisson.common.memories import Caller
from caisson.common.recalls import Feedback, Recalled, Search
from caisson.memory.domain.layers import Layer
from tests.support.memory_desk import Desk, Outage
from tests.support.memory_world import NOW, PAST, SCOPES, SESSIONS, USERS, WORDS, World, allowed_of

PROBES = 200

ADMITTED = """
SELECT memory_id FROM memory.memories
WHERE tenant_id = $1 AND scopes && $2::text[] AND status <> 'cold'
  AND valid_from <= $3 AND (valid_to IS NULL OR valid_to > $3) AND (expires_at IS NULL OR expires_at > $4)
  AND (cardinality($5::text[]) = 0 OR layer = ANY ($5)) AND (layer <> 'session' OR session_id = $6)
"""


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Return how somebody asks."""
    return {
        "tenant": draw(st.sampled_from((0, 1, 2))),
        "user": draw(st.sampled_from(USERS)),
        "granted": draw(st.lists(st.sampled_from((*SCOPES, "user:ana")), max_size=3)),
        "query": " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))),
        "layers": draw(st.lists(st.sampled_from([layer.value for layer in Layer]), max_size=3, unique=True)),
        "as_of": draw(st.sampled_from((None, None, *PAST, NOW + timedelta(days=30)))),
        "session_id": draw(st.sampled_from(SESSIONS)),
        "k": draw(st.sampled_from((1, 8, 100))),
        "away": draw(st.sampled_from(("", "", "index", "embedder"))),
        "as_context": draw(st.booleans()),
        "ahead": draw(st.sampled_from((timedelta(), timedelta(hours=2)))),
    }


@given(asked=questions())
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_nothing_is_told_counted_or_rewarded_beyond_the_hard_filter(
    world: World, word_index: Outage, asked: dict[str, Any]
) -> None:
    desk = world.of(world.tenants[asked["tenant"]])
    word_index.away, desk.embedder.away = asked["away"] == "index", asked["away"] == "embedder"
    desk.clock.ahead = asked["ahead"]
    caller = desk.caller(asked["user"], *asked["granted"])
    wishes = {name: asked[name] for name in ("query", "layers", "as_of", "session_id", "k")}
    try:
        ids, found, retrieval_id = await _ask(desk, Search(caller=caller, token_budget=100_000, **wishes), asked)
    except InvalidInput:
        assert (asked["layers"], asked["session_id"]) == (["session"], None)
        return
    finally:
        word_index.away = desk.embedder.away = False
    admitted = await _admitted(desk, caller, asked)
    assert set(ids) <= admitted
    assert found <= len(admitted)
    rewarded = await desk.recall.feedback(Feedback(caller=caller, retrieval_id=retrieval_id, reward=1.0))
    assert set(rewarded.updated) == set(ids)
    stranger = desk.caller("somebody", *asked["granted"])
    with pytest.raises(NotFound):
        await desk.recall.feedback(Feedback(caller=stranger, retrieval_id=retrieval_id, reward=1.0))


async def _ask(desk: Desk, request: Search, asked: dict[str, Any]) -> tuple[list[str], int, str]:
    if asked["as_context"]:
        context = await desk.recall.context(request)
        return context.ids, context.diagnostics.found, context.retrieval_id
    told = await desk.recall.search(request)
    return [hit.memory.id for hit in told.hits], told.diagnostics.found, told.retrieval_id


async def _admitted(desk: Desk, caller: Caller, asked: dict[str, Any]) -> set[str]:
    """Ask SQL itself, in words of its own."""
    now = desk.clock()
    allowed = sorted(allowed_of(caller))
    layers = asked["layers"] or [layer.value for layer in Layer]
    rows = await desk.rows(ADMITTED, allowed, asked["as_of"] or now, now, layers, asked["session_id"])
    return {row["memory_id"] for row in rows}


async def test_probes_of_other_tenants_find_nothing_while_everything_changes(world: World, word_folder: Path) -> None:
    """Searches for the very words that others store, beside writes, deletions and copies of the index."""
    in_force = set()
    word = {tenant: f"secret{secrets.token_hex(4)}" for tenant in world.tenants}
    stop = asyncio.Event()

    async def change(tenant: TenantId) -> None:
        desk, kept, number = world.of(tenant), list[str](), 0
        while not stop.is_set():
            number += 1
            kept.append(await desk.store(f"{word[tenant]} {WORDS[number % 8]} {number}", scopes=["tenant"]))
            if len(kept) > 4:
                await desk.delete(kept.pop(0))
            await asyncio.sleep(0.1)

    async def tidy() -> None:
        while not stop.is_set():
            await world.desk.index.optimize()
            in_force.add(json.loads((word_folder / "store.json").read_text())["shard"])
            await asyncio.sleep(0.01)

    changing = [asyncio.create_task(work) for work in (*map(change, world.tenants), tidy())]
    rng = random.Random(11)
    try:
        told = [await _probe(world, word, rng) for _ in range(PROBES)]
    finally:
        stop.set()
        await asyncio.gather(*changing)
    assert sum(len(answer.hits) for answer in told) > PROBES, "the askers did find their own"
    assert len(in_force) > 1, "the index was copied meanwhile"


async def _probe(world: World, word: dict[TenantId, str], rng: random.Random) -> Recalled:
    tenant = rng.choice(world.tenants)
    desk = world.of(tenant)
    query = " ".join((*word.values(), rng.choice(WORDS)))
    answer = await desk.recalled(query, caller=desk.caller(rng.choice(USERS), *rng.sample(SCOPES, 1)), k=100)
    others = [foreign for owner, foreign in word.items() if owner != tenant]
    assert not any(foreign in hit.memory.text for hit in answer.hits for foreign in others)
    return answer
