"""The set that is shipped, and what a set of one's own must be."""

import json
from collections import Counter
from typing import Any

import pytest

from caisson.common.errors import InvalidInput
from caisson.memory.domain.question_sets import ABSTENTION, CROSS_TENANT, read_set
from tests.support.memory_set.generate import FILE, generate, render

SLICES = {
    "easy",
    "medium",
    "hard",
    "update",
    "negation",
    "near number",
    "temporal",
    "multilingual",
    ABSTENTION,
    CROSS_TENANT,
}


def test_the_shipped_set_is_what_its_seed_makes() -> None:
    assert FILE.read_text() == render(generate())


def test_the_shipped_set_is_large_and_of_every_kind() -> None:
    questions = read_set(FILE.read_bytes())
    assert len(questions.memories) >= 300
    assert len(questions.questions) >= 200
    assert len({memory.tenant for memory in questions.memories}) >= 4
    counts = Counter(question.slice for question in questions.questions)
    assert set(counts) == SLICES
    assert min(counts.values()) >= 20
    for question in questions.questions:
        assert bool(question.relevant) != (question.slice in {ABSTENTION, CROSS_TENANT})


def test_its_halves_share_no_question_and_every_slice() -> None:
    calibration, held_out = read_set(FILE.read_bytes()).halves()
    assert not {question.id for question in calibration} & {question.id for question in held_out}
    first, second = (Counter(question.slice for question in half) for half in (calibration, held_out))
    assert all(abs(first[name] - second[name]) <= 1 for name in SLICES)


MEMORY = {
    "id": "m",
    "tenant": "t",
    "user": "u",
    "scopes": ["tenant"],
    "text": "x",
    "valid_from": "2026-01-01T00:00:00Z",
}
QUESTION: dict[str, Any] = {"id": "q", "slice": "easy", "tenant": "t", "user": "u", "text": "x", "relevant": ["m"]}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"memories": []}, "memories", "nothing is remembered"),
    ({"memories": [MEMORY, MEMORY]}, "twice", "an id twice"),
    ({"questions": [QUESTION, QUESTION | {"id": "q2", "relevant": ["n"]}]}, "unknown memories", "an unknown memory"),
    ({"memories": [MEMORY | {"valid_from": "2026-01-01T00:00:00"}]}, "valid_from", "a time without its offset"),
    ({"memories": [MEMORY | {"password": "x"}]}, "password", "a field that is none"),
    ({"name": 1}, "name", "another type"),
]


@pytest.mark.parametrize(("change", "told", "reason"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_set_that_is_none_is_refused_and_says_why(change: dict[str, Any], told: str, reason: str) -> None:
    whole = {"name": "mine", "memories": [MEMORY], "questions": [QUESTION, QUESTION | {"id": "q2"}]}
    assert read_set(json.dumps(whole).encode()).name == "mine"
    with pytest.raises(InvalidInput, match=told):
        read_set(json.dumps(whole | change).encode())
