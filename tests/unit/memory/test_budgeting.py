"""A budget takes whole entries, best first, and the best one always."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.memory.domain.budgeting import fill

ROWS: list[tuple[list[int], int, list[int], int, str]] = [
    ([10, 10, 10], 30, [10, 10, 10], 0, "all fit, to the last token"),
    ([10, 10, 10], 29, [10, 10], 1, "one token short: the entry is dropped whole"),
    ([10, 50, 10], 25, [10, 10], 1, "a smaller one follows one that was too large"),
    ([100, 10], 25, [100], 1, "the best one is told even alone over the budget"),
    ([], 25, [], 0, "nothing"),
]


@pytest.mark.parametrize(("costs", "budget", "kept", "dropped", "reason"), ROWS, ids=[row[4] for row in ROWS])
def test_whole_entries_fit(costs: list[int], budget: int, kept: list[int], dropped: int, reason: str) -> None:
    filled = fill(((cost, cost) for cost in costs), budget=budget)
    assert ([entry for entry, _ in filled.kept], filled.dropped) == (kept, dropped)


@given(costs=st.lists(st.integers(min_value=0, max_value=500)), budget=st.integers(min_value=1, max_value=1_000))
def test_the_sum_stays_within_the_budget_but_for_a_single_best_one(costs: list[int], budget: int) -> None:
    filled = fill(((cost, cost) for cost in costs), budget=budget)
    assert len(filled.kept) + filled.dropped == len(costs)
    assert filled.tokens <= budget or len([tokens for _, tokens in filled.kept if tokens]) == 1
