"""Terms alone find ids and any script, and an answer says when they could not help."""

import pytest

from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS

pytestmark = LOCAL_MODE_WARNINGS

STORED = [
    "我喜欢喝绿茶，不喜欢咖啡",
    "彼は東京の出版社に住んでいます",
    "Анна живёт в Москве на третьем этаже",
    "le café du port ferme à minuit",
    "the cafe at the station opens at six",
    "订单 CN-A10293 已发货",
    "the order CN-A10294 is waiting",
]
ASKED = [
    ("绿茶", {STORED[0]}, "Chinese within a run"),
    ("東京", {STORED[1]}, "Japanese"),
    ("出版社", {STORED[1]}, "a longer word of it"),
    ("в Москве", {STORED[2]}, "Russian"),
    ("МОСКВЕ", {STORED[2]}, "Russian in capitals"),
    ("café", {STORED[3], STORED[4]}, "with its accent"),
    ("cafe", {STORED[3], STORED[4]}, "without it"),
    ("cafe\u0301", {STORED[3], STORED[4]}, "with its accent as a sign of its own"),
    ("CN-A10293", {STORED[5]}, "an id, and not its neighbour"),
    ("cn-a10293", {STORED[5]}, "an id in small letters"),
    ("发货", {STORED[5]}, "Chinese beside an id"),
]


@pytest.mark.parametrize(("query", "wanted", "why"), ASKED, ids=[row[2] for row in ASKED])
async def test_the_sparse_leg_alone_finds_every_script(
    each_desk: Desk, query: str, wanted: set[str], why: str
) -> None:
    """M42. Without an embedder the right memories come first, on every engine."""
    for text in STORED:
        await each_desk.store(text)
    each_desk.embedder.away = True
    told = await each_desk.recalled(query)
    assert {hit.memory.text for hit in told.hits} == wanted, why
    assert told.diagnostics.legs in (["sparse"], ["fulltext"])
    assert told.diagnostics.sparse_terms > 0


@pytest.mark.parametrize("query", ["off again", "only here, and now"])
async def test_terms_that_cannot_help_are_told_and_weigh_nothing(meaning_desk: Desk, query: str) -> None:
    """M42. Words that the engine's terms leave out: `sparse_terms` says so, and likeness alone makes the score."""
    await meaning_desk.store("it was off again")
    await meaning_desk.store("The lathe in hall two needs a new belt")
    told = await meaning_desk.recalled(query)
    if told.diagnostics.backend == "sql_bm25":
        assert told.diagnostics.sparse_terms > 0, "full text leaves none of them out"
        return
    assert (told.diagnostics.legs, told.diagnostics.sparse_terms) == (["dense"], 0)
    assert all(hit.score == pytest.approx(min(max(hit.cosine or 0, 0), 0.995)) for hit in told.hits)
