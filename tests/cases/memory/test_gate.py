"""What is told is near enough by a leg's own score; what is not is counted, with the score that it had."""

import pytest

from caisson.common.ids import UserId
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.domain.gating import Thresholds
from caisson.memory.domain.indexing import IndexQuery
from caisson.memory.domain.principals import HardFilter, Principal
from tests.support.memory_desk import Desk, Outage, Turntable
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS

pytestmark = LOCAL_MODE_WARNINGS

IDENTICAL = [
    ("the deadline of the audit is the 15 October", "the deadline of the audit is the 16 October", "another number"),
    ("Alice manages Bob", "Bob manages Alice", "the same words in another order"),
    ("the harbour master keeps the key", "the harbour master keeps the key of the north gate", "all of it and more"),
    ("it was off again", "it was on then", "words that terms leave out"),
    ("The order CN-A10293 went to Oslo and not to Rome. " * 60, "The order CN-A10293 went to Oslo", "many windows"),
]


@pytest.mark.parametrize(("text", "near", "why"), IDENTICAL, ids=[row[2] for row in IDENTICAL])
async def test_the_very_text_scores_highest_and_passes(meaning_desk: Desk, text: str, near: str, why: str) -> None:
    """M39. On every engine the identical text comes first with the score 1, and every score is in [0, 1]."""
    for stored in (text.strip(), near):
        await meaning_desk.store(stored)
    told = await meaning_desk.recalled(text.strip(), token_budget=100_000)
    assert told.hits[0].memory.text == text.strip(), why
    assert told.hits[0].score == 1.0
    assert all(0 <= hit.score < 1 for hit in told.hits[1:])
    nearness = [hit.cosine for hit in told.hits if hit.cosine is not None]
    assert all(-1 <= cosine <= 1 for cosine in nearness)
    assert nearness[:1] == [max(nearness)] if nearness else told.diagnostics.backend == "sql_bm25"


async def test_what_stays_below_the_gate_is_counted_with_its_score(meaning_desk: Desk) -> None:
    """M40. A memory at .45 under a gate of .5 is not told; the answer says that there is one, and how near it is."""
    strict = Desk(
        pool=meaning_desk.pool,
        index=meaning_desk.index,
        embedder=meaning_desk.embedder,
        clock=meaning_desk.clock,
        thresholds=Thresholds(dense=0.5, lexical=0.8),
    )
    await strict.store("The customer moved to Oslo in 2021.")
    told = await strict.recalled("where is the customer's home")
    happened = told.diagnostics
    assert (told.hits, happened.found, happened.gated) == ([], 1, 1)
    assert (happened.gate, happened.reason) == (0.5, "filtered below the gate: 1")
    if happened.backend == "vector":
        assert happened.best_cosine == pytest.approx(0.446, abs=0.01)
    else:
        assert happened.best_cosine is None
        assert happened.best_lexical == pytest.approx(1 / 3), "customer, of customer, s and home"


async def test_an_unrelated_query_is_answered_with_nothing_and_why(meaning_desk: Desk) -> None:
    """M40. Nothing near is an answer with a reason, and it differs from nothing stored."""
    empty = await meaning_desk.recalled("tax treaties of the nineteenth century")
    assert (empty.hits, empty.diagnostics.reason) == ([], "nothing that the caller may see was found")
    await meaning_desk.store("The customer moved to Oslo in 2021.")
    told = await meaning_desk.recalled("tax treaties of the nineteenth century")
    assert told.hits == []
    assert (told.diagnostics.reason or "").startswith(
        "filtered below the gate: 1" if told.diagnostics.backend == "vector" else "nothing that the caller may see"
    )


UNRELATED = [
    "The lathe in hall two needs a new belt",
    "Ana keeps bees behind the vicarage",
    "Invoices are archived for ten years",
]


async def test_the_gate_reads_the_cosine_and_not_the_rank(
    meaning_desk: Desk, meaning_index: Outage, minilm: MiniLm
) -> None:
    """M41. The best of the unrelated has the highest fused score that there is; its cosine keeps it out."""
    for text in UNRELATED:
        await meaning_desk.store(text)
    query = "quantum chromodynamics lattice simulation"
    told = await meaning_desk.recalled(query)
    happened = told.diagnostics
    assert (told.hits, happened.best_lexical, happened.degraded == []) == ([], None, happened.backend == "vector")
    if happened.backend != "vector":
        assert happened.found == 0
        return
    assert (happened.legs, happened.found, happened.gated) == (["dense", "sparse"], 3, 3)
    assert happened.sparse_terms == 4
    assert happened.best_cosine is not None
    assert happened.best_cosine < 0.22
    [vector] = await minilm.embed([query])
    asked = IndexQuery(dense=vector, text=query, limit=16)
    best = (await meaning_index.search(asked, _filter(meaning_desk))).found[0]
    assert best.fused == pytest.approx(0.75), "as high as a first rank of the dense leg can be"


def _filter(desk: Desk) -> HardFilter:
    now = Turntable()()
    return HardFilter(
        principal=Principal(tenant=desk.tenant, user=UserId(desk.user), granted=frozenset()), now=now, as_of=now
    )
