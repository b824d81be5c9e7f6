"""How long a recall waits for what it can do without.

Invariant: what is late is left alone: its own limits, which may be longer, decide what becomes of it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from caisson.common.errors import Unavailable

T = TypeVar("T")


async def answered_within(limit_s: float, part: Coroutine[Any, Any, T]) -> T:
    """Return what a part answers; raise Unavailable where it does not in time."""
    answering = asyncio.ensure_future(part)
    answering.add_done_callback(_hear)
    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(answering)
    except TimeoutError:
        raise Unavailable(f"no answer in {limit_s:g} s") from None


def _hear(answered: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not answered.cancelled():
        answered.exception()
