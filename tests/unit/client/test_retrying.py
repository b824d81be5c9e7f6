"""When a request is made again: the whole decision as a table."""

import pytest

from caisson.client.retrying import GiveUp, Lost, NotSent, Refused, Retries, RetryAfter, back_off_s, decide

RETRIES = Retries(first_delay_s=1, max_delay_s=8, give_up_after_s=30, in_progress_s=600)

CASES: list[tuple[str, NotSent | Lost | Refused, str, bool, float, bool]] = [
    # why, failure, method, with a key, seconds since the first failure, again?
    ("nothing was sent: safe for anything", NotSent(), "POST", False, 0, True),
    ("nothing was sent: safe for a delete, too", NotSent(), "DELETE", False, 0, True),
    ("not for ever", NotSent(), "GET", False, 30, False),
    ("the answer was lost: a key makes a POST safe", Lost(), "POST", True, 0, True),
    ("the answer was lost: without a key it may run twice", Lost(), "POST", False, 0, False),
    ("reading twice is reading once", Lost(), "GET", False, 0, True),
    ("putting twice is putting once", Lost(), "PUT", False, 0, True),
    ("a second delete would tell a lie (not found)", Lost(), "DELETE", False, 0, False),
    ("a gateway in front has no backend now", Refused(status=502), "POST", True, 0, True),
    ("not ready", Refused(status=503), "GET", False, 0, True),
    ("timed out on the way", Refused(status=504), "POST", True, 0, True),
    ("timed out on the way, may have run", Refused(status=504), "POST", False, 0, False),
    ("too fast", Refused(status=429, retry_after_s=2), "POST", True, 0, True),
    ("a bug is not retried", Refused(status=500), "GET", False, 0, False),
    ("bad input stays bad", Refused(status=422), "POST", True, 0, False),
    ("the first request with this key still runs", Refused(status=409, retry_after_s=1), "POST", True, 500, True),
    ("and is waited for within reason", Refused(status=409, retry_after_s=1), "POST", True, 600, False),
    ("a conflict without Retry-After is an answer", Refused(status=409), "POST", True, 0, False),
    (
        "a conflict of a request without a key is an answer",
        Refused(status=409, retry_after_s=1),
        "PUT",
        False,
        0,
        False,
    ),
]


@pytest.mark.parametrize(
    ("failure", "method", "keyed", "elapsed_s", "again"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_a_request_is_repeated_only_where_that_cannot_do_a_thing_twice(
    failure: NotSent | Lost | Refused, method: str, *, keyed: bool, elapsed_s: float, again: bool
) -> None:
    decision = decide(failure, method=method, keyed=keyed, attempt=1, elapsed_s=elapsed_s, retries=RETRIES)
    assert isinstance(decision, RetryAfter if again else GiveUp)


def test_the_pause_grows_to_its_maximum_and_is_spread() -> None:
    for attempt, full_s in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (10_000, 8)):
        pauses = {back_off_s(attempt, RETRIES) for _ in range(50)}
        assert full_s / 2 <= min(pauses) < max(pauses) <= full_s


def test_the_gateway_s_wish_to_wait_is_heeded() -> None:
    in_progress = Refused(status=409, retry_after_s=7)
    assert decide(in_progress, method="POST", keyed=True, attempt=1, elapsed_s=0, retries=RETRIES) == RetryAfter(7)
    busy = Refused(status=503, retry_after_s=20)
    assert decide(busy, method="GET", keyed=False, attempt=1, elapsed_s=0, retries=RETRIES) == RetryAfter(20)
