"""Reading long texts beside the event loop. Brief ones are read on it: a thread costs a tenth of a millisecond.

Invariant: what is read on the loop takes a few milliseconds; 256 KiB take up to 200.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_BRIEF_CHARS = 8 * 1024


async def beside(texts: Iterable[str | None], read: Callable[[], T]) -> T:
    """Call `read`, in a thread when the texts that it reads are long in sum."""
    if sum(len(text) for text in texts if text is not None) > _BRIEF_CHARS:
        return await asyncio.to_thread(read)
    return read()
