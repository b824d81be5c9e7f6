"""How long the supervisor waits before it starts a child again."""

import pytest

from caisson.stack.keeper import restart_delay_s

DELAYS = [
    (0, 0.25, "the first death is repaired almost at once"),
    (1, 0.5, "then the pause doubles"),
    (4, 4.0, "and doubles"),
    (6, 10.0, "up to a limit"),
    (5_000, 10.0, "that no number of deaths exceeds or overflows"),
]


@pytest.mark.parametrize(("failures", "delay_s", "reason"), DELAYS)
def test_the_pause_grows_with_each_short_life(failures: int, delay_s: float, reason: str) -> None:
    assert restart_delay_s(failures) == delay_s, reason
