"""What a search found serves the same question of the same principal, and only while nothing has changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.indexing import Candidate, Candidates
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.reading import Epoch
from caisson.memory.domain.recent_searches import Question, RecentSearches
from caisson.memory.domain.searching import FULLTEXT_BACKEND, INDEX_BACKEND, Searched

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANA = Principal(tenant=TenantId("acme"), user=UserId("ana"), granted=frozenset({"team:a"}))
FILTER = HardFilter(principal=ANA, now=NOW, as_of=NOW)
EPOCH = Epoch(changes=7, until=None)
QUERY, LIMIT = "where is the key?", 16


def found(*ids: str) -> Searched:
    candidates = [Candidate(memory_id=id_, cosine=0.5, lexical=None, fused=1.0) for id_ in ids]
    told = Candidates(found=candidates, legs=("dense", "sparse"), sparse_terms=1)
    return Searched(candidates=told, backend=INDEX_BACKEND, degraded=())


ASKED = Question.of(QUERY, FILTER, LIMIT)
OTHERS = [
    (Question.of("where was the key?", FILTER, LIMIT), "another query"),
    (Question.of(QUERY, FILTER, LIMIT + 1), "more candidates"),
    (Question.of(QUERY, replace(FILTER, layers=frozenset({Layer.SEMANTIC})), LIMIT), "other layers"),
    (Question.of(QUERY, replace(FILTER, as_of=NOW - timedelta(days=1)), LIMIT), "a past time"),
    (Question.of(QUERY, replace(FILTER, principal=replace(ANA, user=UserId("bo"))), LIMIT), "another user"),
    (Question.of(QUERY, replace(FILTER, principal=replace(ANA, tenant=TenantId("acme2"))), LIMIT), "another tenant"),
    (Question.of(QUERY, replace(FILTER, principal=replace(ANA, granted=frozenset())), LIMIT), "fewer scopes"),
]


@pytest.mark.parametrize(("other", "reason"), OTHERS, ids=[reason for _, reason in OTHERS])
def test_another_question_shares_nothing(other: Question, reason: str) -> None:
    recent = RecentSearches()
    recent.keep(ASKED, found("mem_1"), EPOCH, NOW)
    assert recent.get(other, NOW) is None, reason


SERVES = [
    (EPOCH, timedelta(), True, "at once"),
    (EPOCH, timedelta(minutes=4), True, "a little later"),
    (EPOCH, timedelta(minutes=5), False, "too long ago"),
    (EPOCH, timedelta(seconds=-1), False, "asked before it was kept: the clock was set back"),
    (replace(EPOCH, until=NOW + timedelta(seconds=9)), timedelta(seconds=8), True, "one is still to come"),
    (replace(EPOCH, until=NOW + timedelta(seconds=9)), timedelta(seconds=9), False, "one came into force"),
]


@pytest.mark.parametrize(("kept", "later", "serves", "reason"), SERVES, ids=[row[-1] for row in SERVES])
def test_it_serves_for_its_time(kept: Epoch, later: timedelta, *, serves: bool, reason: str) -> None:
    recent = RecentSearches()
    recent.keep(ASKED, found("mem_1"), kept, NOW)
    got = recent.get(ASKED, NOW + later)
    assert (got is not None) is serves, reason
    assert got is None or got.epoch == kept, "which epoch it is of is told: the store has the last word"
    assert (recent.get(ASKED, NOW) is not None) is serves, "what no longer serves is gone"


def test_epochs_are_known_of_those_who_asked_last() -> None:
    recent = RecentSearches(max_principals=2)
    people = [replace(ANA, user=UserId(name)) for name in ("ana", "bo", "cy")]
    for changes, person in enumerate((*people[:2], people[0], people[2])):
        recent.note(person, Epoch(changes=changes, until=None))
    assert [recent.last_epoch(person) for person in people] == [2, None, 3]


def test_what_was_found_without_a_part_is_not_kept() -> None:
    recent = RecentSearches()
    recent.keep(ASKED, replace(found("mem_1"), degraded=("embedder: away",)), EPOCH, NOW)
    recent.keep(ASKED, replace(found("mem_1"), backend=FULLTEXT_BACKEND), EPOCH, NOW)
    assert recent.get(ASKED, NOW) is None


def test_what_all_hold_together_is_bounded_and_the_least_used_goes_first() -> None:
    recent = RecentSearches(max_candidates=9)
    questions = [Question.of(f"question {number}", FILTER, LIMIT) for number in range(4)]
    for question in questions[:3]:
        recent.keep(question, found("mem_1", "mem_2"), EPOCH, NOW)
    recent.get(questions[0], NOW)
    recent.keep(questions[3], found("mem_3", "mem_4"), EPOCH, NOW)
    assert [recent.get(question, NOW) is not None for question in questions] == [True, False, True, True]
    recent.keep(questions[0], found(*map(str, range(20))), EPOCH, NOW)
    assert [recent.get(question, NOW) is not None for question in questions] == [False, False, False, False]
