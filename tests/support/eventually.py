"""Waiting for a condition: the only waiting that tests do."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar, overload

T = TypeVar("T")
_POLL_S = 0.02


@overload
async def eventually(condition: Callable[[], Awaitable[T]], *, within_s: float = 5) -> T: ...


@overload
async def eventually(condition: Callable[[], T], *, within_s: float = 5) -> T: ...


async def eventually(condition: Callable[[], T | Awaitable[T]], *, within_s: float = 5) -> T:
    """Return the first truthy value of `condition`, plain or async.

    A condition may also assert: an AssertionError means "not yet", and the last one is raised when time is up.
    """
    deadline = monotonic() + within_s
    while True:
        failure: AssertionError | None = None
        try:
            value = condition()
            result: T = await value if inspect.isawaitable(value) else value
            if result:
                return result
        except AssertionError as error:
            failure = error
        if monotonic() > deadline:
            raise failure or AssertionError(f"{condition} did not hold within {within_s} s")
        await asyncio.sleep(_POLL_S)
