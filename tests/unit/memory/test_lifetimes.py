"""When an unused memory goes cold, as a table of days."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from caisson.memory.domain.layers import Layer
from caisson.memory.domain.lifetimes import has_gone_cold, strength
from tests.support import memory_records
from tests.support.memory_points import NOW

EPISODE: dict[str, Any] = {"layer": Layer.EPISODIC, "importance": 0.5, "confidence": 1.0}
CASES = [
    (EPISODE, 29, False, "nothing within a month"),
    (EPISODE, 59, False, "an ordinary episode after two months"),
    (EPISODE, 65, True, "and a little later"),
    (EPISODE | {"importance": 1.0}, 65, False, "an important one lasts longer"),
    (
        EPISODE | {"importance": 0.0, "confidence": 0.2},
        31,
        True,
        "a doubtful one of no importance is the first to go",
    ),
    (EPISODE | {"q": 1.0, "visits": 10}, 150, False, "what proved useful again and again"),
    (EPISODE | {"q": -1.0}, 50, True, "what proved useless"),
    (EPISODE | {"layer": Layer.SEMANTIC}, 300, False, "a fact fades slower"),
    (EPISODE | {"layer": Layer.SEMANTIC}, 400, True, "and fades"),
    (EPISODE | {"layer": Layer.PROCEDURAL}, 700, False, "a rule lasts longest"),
]


@pytest.mark.parametrize(("values", "days", "cold", "why"), CASES)
def test_importance_confidence_and_use_keep_a_memory_warm(
    values: dict[str, Any], days: int, *, cold: bool, why: str
) -> None:
    memory = memory_records.memory(used_at=NOW - timedelta(days=days), **values)
    assert has_gone_cold(memory, NOW) is cold, (why, strength(memory, NOW))


def test_strength_only_falls_with_time() -> None:
    memory = memory_records.memory()
    strengths = [strength(replace(memory, used_at=NOW - timedelta(days=days)), NOW) for days in range(0, 700, 7)]
    assert strengths == sorted(strengths, reverse=True)
    assert 0 < strengths[-1] < strengths[0] <= 1
