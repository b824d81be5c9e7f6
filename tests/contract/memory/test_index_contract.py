"""Whatever the engine: hard filters first, then the legs, each with its own scores; what is written is found."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from caisson.common.errors import InvalidInput
from caisson.memory.domain.indexing import Candidate, Index, IndexQuery
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS, Engine
from tests.support.memory_points import NOW, a_filter, a_point, a_tenant, asking, vector_of

pytestmark = LOCAL_MODE_WARNINGS

DAY = timedelta(days=1)


async def found(index: Index, engine: Engine, text: str, filter_: HardFilter) -> set[str]:
    """The ids that a search finds; by terms alone where the engine knows no likeness."""
    answer = await index.search(asking(text, dense=engine.dense), filter_)
    return {candidate.memory_id for candidate in answer.found}


async def by_terms(index: Index, text: str, filter_: HardFilter) -> list[Candidate]:
    return (await index.search(asking(text, dense=False), filter_)).found


NEIGHBOURS = [
    ("t1", "t10", "tenant", "a tenant's name continues"),
    ("t1", "t1-x", "tenant", "with a dash"),
    ("t1", "T1", "tenant", "in other case"),
    ("t1", "t1", "team/ab", "a scope's name continues"),
    ("t1", "t1", "team/a/b", "with a slash"),
    ("t1", "t1", "team", "a scope's name stops short"),
    ("t1", "t1", "Team/a", "in other case"),
    ("t1", "t1", "user:an", "a user's name stops short"),
    ("t1", "t1", "user:ana2", "a user's name continues"),
    ("t1", "t1", "*", "what looks like a pattern"),
    ("t1", "t1", " ", "a scope that is a space"),
]


@pytest.mark.parametrize(("own", "other", "scope", "why"), NEIGHBOURS, ids=[row[3] for row in NEIGHBOURS])
async def test_names_are_compared_whole(
    index: Index, engine: Engine, own: str, other: str, scope: str, why: str
) -> None:
    base = a_tenant("whole")
    mine, theirs = type(base)(f"{base}/{own}"), type(base)(f"{base}/{other}")
    kept = a_point(mine, "the tide turns", scopes=frozenset({"team/a"}))
    await index.upsert([kept, a_point(theirs, "the tide turns", scopes=frozenset({scope}))])
    assert await found(index, engine, "the tide turns", a_filter(mine, granted={"team/a"})) == {kept.memory_id}, why


async def test_without_grants_a_caller_finds_its_own_and_its_tenants(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    mine = a_point(tenant, "low water at noon", scopes=frozenset({"user:ana"}))
    shared = a_point(tenant, "low water at noon", scopes=frozenset({"tenant", "team/a"}))
    hidden = [a_point(tenant, "low water at noon", scopes=frozenset({s})) for s in ("user:bo", "team/a")]
    await index.upsert([mine, shared, *hidden])
    assert await found(index, engine, "low water", a_filter(tenant)) == {mine.memory_id, shared.memory_id}


OSLO = timezone(timedelta(hours=2))
TIMES = [
    ({}, {}, 1, "open-ended"),
    ({"expires_at": NOW - timedelta(seconds=1)}, {}, 0, "expired a second ago, unswept"),
    ({"expires_at": NOW}, {}, 0, "expires this instant"),
    ({"expires_at": NOW.astimezone(OSLO)}, {}, 0, "the same instant, written elsewhere"),
    ({"expires_at": NOW + timedelta(microseconds=1)}, {}, 1, "a microsecond left"),
    ({"valid_from": NOW}, {}, 1, "valid from this instant"),
    ({"valid_from": NOW + timedelta(microseconds=1)}, {}, 0, "not yet valid"),
    ({"valid_to": NOW}, {}, 0, "validity ends this instant"),
    ({"valid_to": NOW - DAY}, {"as_of": NOW - 2 * DAY}, 1, "valid then, asked later"),
    ({"valid_to": NOW - DAY}, {"as_of": NOW - DAY / 2}, 0, "no longer valid then"),
    ({"valid_from": NOW - DAY}, {"as_of": NOW - 2 * DAY}, 0, "not yet known then"),
    ({"expires_at": NOW - DAY}, {"as_of": NOW - 2 * DAY}, 0, "a past view does not bring back what expired"),
    ({"valid_from": datetime(1, 1, 2, tzinfo=UTC)}, {}, 1, "valid since ever"),
    ({"valid_to": datetime(9999, 12, 30, tzinfo=UTC)}, {}, 1, "valid for ever"),
]


@pytest.mark.parametrize(("times", "asked", "seen", "why"), TIMES, ids=[row[3] for row in TIMES])
async def test_time_is_judged_when_reading(
    index: Index, engine: Engine, times: dict[str, Any], asked: dict[str, Any], seen: int, why: str
) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "the ferry leaves at nine", **times)])
    filter_ = a_filter(tenant, **asked)
    assert len(await found(index, engine, "the ferry leaves at nine", filter_)) == seen, why


async def test_layers_narrow_and_none_named_means_all(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    points = {layer: a_point(tenant, "mind the gap", layer=layer) for layer in Layer}
    await index.upsert(list(points.values()))
    assert len(await found(index, engine, "mind the gap", a_filter(tenant))) == len(Layer)
    two = {Layer.EPISODIC, Layer.PROCEDURAL}
    expected = {points[layer].memory_id for layer in two}
    assert await found(index, engine, "mind the gap", a_filter(tenant, layers=two)) == expected


async def test_deleting_reaches_every_chunk_of_the_named_memories_of_one_tenant(index: Index, engine: Engine) -> None:
    tenant, neighbour = a_tenant(), a_tenant()
    chunks = [a_point(tenant, f"anchor {n}", "mem-1", chunk=n) for n in range(30)]
    others = [a_point(tenant, "anchor", "mem-10"), a_point(neighbour, "anchor", "mem-1")]
    await index.upsert([*chunks, *others])
    before = await index.count()
    await index.delete_memories(tenant, [])
    assert await index.count() == before
    await index.delete_memories(tenant, ["mem-1", "unknown"])
    assert await index.count() == before - (len(chunks) if engine.chunked else 1)
    assert await found(index, engine, "anchor", a_filter(tenant)) == {"mem-10"}
    assert await found(index, engine, "anchor", a_filter(neighbour)) == {"mem-1"}


async def test_more_deletions_than_one_page_all_happen(index: Index) -> None:
    tenant = a_tenant()
    points = [a_point(tenant, f"row {n}", f"mem-{n}") for n in range(1_257)]
    before = await index.count()
    await index.upsert(points)
    await index.delete_memories(tenant, [point.memory_id for point in points])
    assert [row async for row in index.stored(tenant)] == []
    assert await index.count() == before


async def test_writing_the_same_twice_changes_nothing(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    points = [a_point(tenant, f"buoy {n}", f"mem-{n}") for n in range(5)]
    await index.upsert(points)
    before = await index.count(), await index.search(asking("buoy 3", dense=engine.dense), a_filter(tenant))
    await index.upsert(points)
    assert (await index.count(), await index.search(asking("buoy 3", dense=engine.dense), a_filter(tenant))) == before


async def test_a_version_replaces_the_earlier_one_with_all_its_chunks(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    memories = [f"mem-{n}" for n in range(501)]
    await index.upsert([a_point(tenant, f"mooring {n}", id_, chunk=n) for id_ in memories for n in range(2)])
    await index.upsert([a_point(tenant, "berth", id_, version=2) for id_ in memories])
    assert {row async for row in index.stored(tenant)} == {(tenant, id_, 2) for id_ in memories}
    assert await by_terms(index, "mooring", a_filter(tenant)) == []
    assert await found(index, engine, "berth", a_filter(tenant)) <= set(memories)


async def test_an_earlier_version_that_comes_late_does_not_win(index: Index) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "berth", "mem-1", version=2)])
    await index.upsert([a_point(tenant, "mooring", "mem-1", version=1)])
    assert [row async for row in index.stored(tenant)] == [(tenant, "mem-1", 2)]
    assert await by_terms(index, "mooring", a_filter(tenant)) == []


async def test_chunks_answer_as_one_memory_with_the_best_score(index: Index, engine: Engine) -> None:
    if not engine.dense:
        pytest.skip("this engine knows no likeness")
    tenant = a_tenant()
    texts = ["a long preamble", "the code word is heron", "a long appendix"]
    await index.upsert([a_point(tenant, text, "mem-1", chunk=n) for n, text in enumerate(texts)])
    (only,) = (await index.search(asking(texts[1]), a_filter(tenant))).found
    assert only.memory_id == "mem-1"
    assert only.cosine == pytest.approx(1, abs=1e-3)
    (exact,) = await by_terms(index, "heron", a_filter(tenant))
    assert exact.lexical is not None
    assert only.lexical is not None
    assert only.lexical > exact.lexical > 0


async def test_many_chunks_of_one_memory_do_not_hide_the_others(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "gale warning", "long", chunk=n) for n in range(200)])
    await index.upsert([a_point(tenant, "gale warning for tomorrow and the day after", f"mem-{n}") for n in range(3)])
    answer = await index.search(asking("gale warning", limit=4, dense=engine.dense), a_filter(tenant))
    assert {candidate.memory_id for candidate in answer.found} == {"long", "mem-0", "mem-1", "mem-2"}


async def test_the_identical_text_scores_highest_on_every_leg(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    texts = ["the lock gate opens at six", "the gate opens", "a lock of hair", "six of one", "quiet water"]
    await index.upsert([a_point(tenant, text, text) for text in texts])
    best = (await index.search(asking(texts[0], dense=engine.dense), a_filter(tenant))).found
    assert best[0].memory_id == texts[0]
    assert best[0].lexical == max(candidate.lexical or 0 for candidate in best)
    if engine.dense:
        assert best[0].cosine == pytest.approx(1, abs=1e-3)
        assert all(-1 <= (candidate.cosine or 0) < 0.99 for candidate in best[1:])


async def test_what_a_caller_may_not_see_changes_no_score(index: Index, engine: Engine) -> None:
    tenant, neighbour = a_tenant(), a_tenant()
    texts = ["the sluice is shut", "the sluice is open", "rain is expected", "the pump runs at night"]
    await index.upsert([a_point(tenant, text, text) for text in texts])
    query = asking("sluice at night", dense=engine.dense)
    before = await index.search(query, a_filter(tenant))
    await index.upsert([a_point(neighbour, f"sluice number {n}") for n in range(40)])
    await index.upsert([a_point(tenant, f"sluice {n}", scopes=frozenset({"user:bo"})) for n in range(40)])
    await index.upsert([a_point(tenant, f"sluice {n}", expires_at=NOW - DAY) for n in range(40)])
    assert await index.search(query, a_filter(tenant)) == before


NO_HELP = [
    ("zyxgard", 1, "an unknown word is a term that finds nothing"),
    ("the and of", 0, "stopwords are no terms"),
    ("🙂 !?", 0, "signs are no terms"),
]


@pytest.mark.parametrize(("text", "terms", "why"), NO_HELP, ids=[row[2] for row in NO_HELP])
async def test_the_answer_tells_what_the_terms_were_worth(index: Index, text: str, terms: int, why: str) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "the barge and the tug, of course!?")])
    answer = await index.search(asking(text, dense=False), a_filter(tenant))
    assert (answer.found, answer.sparse_terms) == ([], terms), why


async def test_legs_answer_alone_and_together(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "the buoy is red", "mem-1"), a_point(tenant, "the barge is blue", "mem-2")])
    sparse = await index.search(asking("red buoy", dense=False), a_filter(tenant))
    assert sparse.legs == (engine.lexical,)
    assert [(c.memory_id, c.cosine) for c in sparse.found] == [("mem-1", None)]
    with pytest.raises(InvalidInput):
        await index.search(IndexQuery(dense=None, text=None, limit=5), a_filter(tenant))
    if not engine.dense:
        return
    dense = await index.search(asking("the buoy is red", sparse=False), a_filter(tenant))
    assert (dense.legs, dense.sparse_terms) == (("dense",), 0)
    assert [(c.memory_id, c.lexical) for c in dense.found] == [("mem-1", None), ("mem-2", None)]
    both = await index.search(asking("the buoy is red"), a_filter(tenant))
    assert both.legs == ("dense", "sparse")
    assert [c.memory_id for c in both.found] == ["mem-1", "mem-2"]
    assert both.found[0].fused == pytest.approx(1 / (1 / 3 + 1) + 1 / (1 / 1 + 1))


ANY_SCRIPT = [
    ("订单 CN-A10293 已发货", "CN-A10293", "an id"),
    ("the error was E_CONN_4012", "e_conn_4012", "an error code in other case"),
    ("the gateway is 10.0.0.1", "10.0.0.1", "an address"),
    ("listens on port 8080", "8080", "a number"),
    ("我喜欢吃苹果", "苹果", "Chinese"),
    ("彼は東京に住んでいます", "東京", "Japanese"),
    ("서울에 살아요", "서울", "Korean"),
    ("Он живёт в городе Москва", "москва", "Russian"),
    ("le café du port", "cafe", "an accent in the text"),
    ("the cafe at the port", "café", "an accent in the query"),
    ("Die Straße ist gesperrt", "STRASSE", "a sharp s"),
]


@pytest.mark.parametrize(("text", "query", "why"), ANY_SCRIPT, ids=[row[2] for row in ANY_SCRIPT])
async def test_terms_alone_find_ids_and_any_script(index: Index, text: str, query: str, why: str) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, text, "mem-1"), a_point(tenant, "nothing of that kind 15 Oct", "mem-2")])
    assert [candidate.memory_id for candidate in await by_terms(index, query, a_filter(tenant))] == ["mem-1"], why


UNSOUND = [
    ([0.5] * 31, "one short"),
    ([0.5] * 33, "one too many"),
    ([], "empty"),
    ([float("nan"), *[0.5] * 31], "not a number"),
    ([float("inf"), *[0.5] * 31], "without bound"),
    ([0.0] * 32, "without direction"),
]


@pytest.mark.parametrize(("dense", "why"), UNSOUND, ids=[row[1] for row in UNSOUND])
async def test_an_unsound_vector_is_refused_and_nothing_written(
    index: Index, engine: Engine, dense: list[float], why: str
) -> None:
    if not engine.dense:
        pytest.skip("this engine knows no likeness")
    tenant = a_tenant()
    with pytest.raises(InvalidInput) as refused:
        await index.upsert([a_point(tenant, "sound"), a_point(tenant, "unsound", dense=dense)])
    assert refused.value.fields[0].field == "dense"
    assert [row async for row in index.stored(tenant)] == [], why
    with pytest.raises(InvalidInput):
        await index.search(IndexQuery(dense=dense, text="sound", limit=3), a_filter(tenant))


async def test_what_is_stored_is_told_once_for_each_point(index: Index, engine: Engine) -> None:
    tenant, neighbour = a_tenant(), a_tenant()
    await index.upsert([a_point(tenant, f"part {n}", "long", chunk=n, version=3) for n in range(4)])
    await index.upsert([a_point(tenant, "short", "short"), a_point(neighbour, "short", "short")])
    own = [(tenant, "long", 3)] * (4 if engine.chunked else 1) + [(tenant, "short", 1)]
    assert sorted([row async for row in index.stored(tenant)]) == own
    assert [row async for row in index.stored(tenant, ["short", "unknown"])] == [(tenant, "short", 1)]
    assert [row async for row in index.stored(tenant, [])] == [], "no memories are not all memories"
    everything = [row async for row in index.stored()]
    assert sorted(row for row in everything if row[0] == tenant) == own
    assert everything.count((neighbour, "short", 1)) == 1


async def test_eight_writers_and_a_reader_lose_nothing(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    before = await index.count()
    batches = 30 if engine.brisk else 3

    async def write(writer: int) -> None:
        for batch in range(batches):
            await index.upsert([a_point(tenant, f"crate {writer} {batch} {n}") for n in range(20)])

    async def read() -> None:
        for _ in range(batches):
            await index.search(asking("crate 3 3 3", dense=engine.dense), a_filter(tenant))

    await asyncio.gather(*(write(writer) for writer in range(8)), read())
    assert await index.count() - before == 8 * batches * 20
    assert len(await found(index, engine, "crate 7 2 19", a_filter(tenant))) >= 1


async def test_an_open_index_answers_checks_and_goes_on_while_optimizing(index: Index, engine: Engine) -> None:
    tenant = a_tenant()
    await index.upsert([a_point(tenant, "before", "mem-1")])
    _, _, seen = await asyncio.gather(
        index.check(), index.optimize(), found(index, engine, "before", a_filter(tenant))
    )
    assert seen == {"mem-1"}
    await index.upsert([a_point(tenant, "after", "mem-2", dense=vector_of("before"))])
    assert "mem-2" in await found(index, engine, "after", a_filter(tenant))
