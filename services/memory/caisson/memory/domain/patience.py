"""How long a caller waits for what it can do without, and when it does not wait at all.

Invariant: what is late is left alone: its own limits, which may be longer, decide what becomes of it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Final, TypeVar

from caisson.common.errors import Unavailable

T = TypeVar("T")

_GLANCE_S: Final = 0.25
_ASKED_AGAIN_AFTER_S: Final = 8.0
_SLOW_FAILURE_S: Final = 1.0
"""A failure that takes so long is as late as no answer."""


async def answered_within(limit_s: float, part: Coroutine[Any, Any, T]) -> T:
    """Return what a part answers; raise Unavailable where it does not in time."""
    answering = asyncio.ensure_future(part)
    answering.add_done_callback(hear)
    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(answering)
    except TimeoutError:
        raise Unavailable(f"no answer in {limit_s:g} s") from None


class Patience:
    """Waits for the answers of one part until it falls silent: one is late, and no later question was answered.

    While the part is silent nobody waits. It is asked one question at a time, by a caller that gives it a glance and
    goes on without; the next one once that failed, or after some seconds. Any answer ends the silence.
    """

    def __init__(self, limit_s: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._waiting: set[asyncio.Timeout] = set()
        self._answered_at = float("-inf")
        self._is_silent = False
        self._asked: asyncio.Future[Any] | None = None
        self._again_at = 0.0

    async def answer(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the part answers; raise Unavailable where it fails, is late, or is silent already."""
        began = self._clock()
        if self._is_silent and not self._may_ask(began):
            raise self._late()
        asked = self._ask(ask())
        try:
            return await self._wait(asked, _GLANCE_S if self._is_silent else self._limit_s)
        except TimeoutError:
            self._note_late(began)
            raise self._late() from None
        except Unavailable:
            if self._clock() - began >= _SLOW_FAILURE_S:
                self._note_late(began)
            raise

    async def _wait(self, asked: asyncio.Future[T], limit_s: float) -> T:
        """Wait so long, or until the part falls silent; raise TimeoutError."""
        async with asyncio.timeout(limit_s) as waiting:
            self._waiting.add(waiting)
            try:
                return await asyncio.shield(asked)
            finally:
                self._waiting.discard(waiting)

    def _may_ask(self, now: float) -> bool:
        return self._asked is None or self._asked.done() or now >= self._again_at

    def _ask(self, question: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        asked = asyncio.ensure_future(question)
        asked.add_done_callback(self._note_answer)
        self._asked, self._again_at = asked, self._clock() + _ASKED_AGAIN_AFTER_S
        return asked

    def _note_answer(self, asked: asyncio.Future[Any]) -> None:
        hear(asked)
        if not asked.cancelled() and not isinstance(asked.exception(), Unavailable):
            self._answered_at, self._is_silent = self._clock(), False

    def _note_late(self, began: float) -> None:
        """Let nobody wait any longer, unless the part answered others since: then this question alone is slow."""
        if self._is_silent or self._answered_at >= began:
            return
        self._is_silent, self._again_at = True, self._clock() + _ASKED_AGAIN_AFTER_S
        for waiting in self._waiting:
            if not waiting.expired():
                waiting.reschedule(asyncio.get_running_loop().time())

    def _late(self) -> Unavailable:
        return Unavailable(f"no answer in {self._limit_s:g} s")


def hear(answered: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not answered.cancelled():
        answered.exception()
