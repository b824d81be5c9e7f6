"""How the client sends times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from caisson.client.models import rfc3339

WEST = timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    ("time", "sent"),
    [
        (datetime(2026, 3, 1, 10, tzinfo=WEST), "2026-03-01T15:00:00.000Z"),
        (datetime(2026, 3, 1, 10, 0, 0, 999_999, tzinfo=UTC), "2026-03-01T10:00:00.999Z"),
        (datetime(9999, 12, 31, 23, tzinfo=WEST), "9999-12-31T23:00:00.000Z"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "0001-01-01T00:00:00.000Z"),
    ],
    ids=["another zone", "more than milliseconds", "no such hour in UTC any more", "no such hour in UTC yet"],
)
def test_every_time_that_can_be_written_can_be_sent(time: datetime, sent: str) -> None:
    assert rfc3339(time) == sent


def test_a_local_time_of_the_first_day_is_sent_for_the_gateway_to_refuse() -> None:
    assert rfc3339(datetime.min).startswith("000")
