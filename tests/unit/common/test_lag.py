"""Who blocks the event loop is seen, and for how long."""

import asyncio
from contextlib import suppress
from time import monotonic

from caisson.common import metrics
from caisson.common.lag import WorstLag, measure_lag
from tests.support.eventually import eventually

BLOCKED_S = 0.15


async def test_a_block_of_the_loop_is_measured() -> None:
    measuring = asyncio.create_task(measure_lag())
    await asyncio.sleep(0)
    end = monotonic() + BLOCKED_S
    while monotonic() < end:
        pass
    await eventually(lambda: _told("caisson_event_loop_lag_max_seconds") >= BLOCKED_S - 0.025)
    slow = _told("caisson_event_loop_lag_seconds_bucket", le="+Inf") - _told(
        "caisson_event_loop_lag_seconds_bucket", le="0.1"
    )
    assert slow >= 1
    measuring.cancel()
    with suppress(asyncio.CancelledError):
        await measuring


def test_the_worst_is_told_until_the_minute_after_its_own_is_over() -> None:
    worst = WorstLag(0.0)
    noted = [(10.0, 0.2), (59.0, 0.01), (61.0, 0.02), (120.0, 0.03), (121.5, 0.01), (182.0, 0.0)]
    assert [worst.note(lag_s, now) for now, lag_s in noted] == [0.2, 0.2, 0.2, 0.2, 0.03, 0.01]


def _told(name: str, **labels: str) -> float:
    for metric in (metrics.LOOP_LAG_SECONDS, metrics.LOOP_LAG_MAX_SECONDS):
        for family in metric.collect():
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
    return 0.0
