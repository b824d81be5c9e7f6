"""Quotas as a table: what was held, what is held with the write, and who says no."""

import pytest

from caisson.memory.domain.quotas import Account, Exceeded, Holding, Quotas, Within, judge

QUOTAS = Quotas(user=Holding(rows=3, bytes=100), tenant=Holding(rows=5, bytes=200))


def account(user: tuple[int, int], tenant: tuple[int, int]) -> Account:
    return Account(user=Holding(rows=user[0], bytes=user[1]), tenant=Holding(rows=tenant[0], bytes=tenant[1]))


CASES = [
    (account((2, 50), (2, 50)), account((3, 60), (3, 60)), None, "up to the limit"),
    (
        account((3, 50), (3, 50)),
        account((4, 60), (4, 60)),
        "user's quota is 3 memories; 3 are used, 1 more",
        "one more",
    ),
    (
        account((1, 50), (5, 50)),
        account((2, 60), (6, 60)),
        "tenant's quota is 5 memories; 5",
        "the tenant's, by others",
    ),
    (
        account((1, 90), (1, 90)),
        account((2, 110), (2, 110)),
        "user's quota is 100 bytes; 90 are used, 20 more",
        "bytes",
    ),
    (account((9, 500), (9, 500)), account((9, 500), (9, 500)), None, "an edit over the limit that adds nothing"),
    (account((9, 500), (9, 500)), account((9, 499), (9, 499)), None, "an edit that frees"),
    (account((3, 100), (3, 100)), account((3, 101), (3, 101)), "bytes", "an edit at the limit that grows"),
]


@pytest.mark.parametrize(("before", "after", "told", "why"), CASES)
def test_a_quota_refuses_only_what_adds(before: Account, after: Account, told: str | None, why: str) -> None:
    match judge(before, after, QUOTAS):
        case Within():
            assert told is None, why
        case Exceeded(told=text):
            assert told is not None, why
            assert told in text
