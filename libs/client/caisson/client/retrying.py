"""When a request is made again: a pure function from what went wrong to a decision.

Invariant: a request that may have reached the gateway is repeated only if repeating it cannot do the thing twice,
which is so for GET and PUT, and for a POST with an Idempotency-Key.
"""

import random
from dataclasses import dataclass

_SAFE_METHODS = frozenset({"GET", "HEAD", "PUT"})
_TRANSIENT = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How patient the client is.

    `give_up_after_s` bounds the time that one call spends failing, `stream_give_up_after_s` the same for an event
    stream without any progress, `in_progress_s` the wait for an earlier request with the same Idempotency-Key.
    """

    first_delay_s: float = 0.1
    max_delay_s: float = 5.0
    give_up_after_s: float = 30.0
    stream_give_up_after_s: float = 120.0
    in_progress_s: float = 900.0


@dataclass(frozen=True, slots=True)
class NotSent:
    """The connection could not be made: the gateway has seen nothing."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke, or stayed silent, after the request was sent: its effect is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The gateway, or something before it, answered with an error status."""

    status: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Make the request again after `delay_s`."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the caller."""


def decide(
    failure: NotSent | Lost | Refused,
    *,
    method: str,
    keyed: bool,
    attempt: int,
    elapsed_s: float,
    retries: Retries,
) -> RetryAfter | GiveUp:
    """Decide after failure number `attempt` (from 1) of a streak that began `elapsed_s` ago."""
    repeatable = keyed or method in _SAFE_METHODS
    delay_s = back_off_s(attempt, retries)
    limit_s = retries.give_up_after_s
    match failure:
        case NotSent():
            pass
        case Lost() if repeatable:
            pass
        case Refused(status=409, retry_after_s=wait_s) if keyed and wait_s is not None:
            delay_s, limit_s = wait_s, retries.in_progress_s
        case Refused(status=status, retry_after_s=wait_s) if repeatable and status in _TRANSIENT:
            delay_s = max(delay_s, wait_s or 0.0)
        case _:
            return GiveUp()
    return RetryAfter(delay_s) if elapsed_s + delay_s <= limit_s else GiveUp()


def back_off_s(attempt: int, retries: Retries) -> float:
    """Return the pause after failure number `attempt`: doubling up to the maximum, with the upper half random."""
    full_s = min(retries.max_delay_s, retries.first_delay_s * 2.0 ** min(attempt - 1, 30))
    return full_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
