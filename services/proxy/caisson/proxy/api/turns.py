"""The exchanges of one connection.

Invariant: one at a time, in the order of arrival. While one waits for its turn, or the client does not take its
answers, the connection is not read: memory stays flat however much a client sends.
"""

import asyncio
from collections import deque

from caisson.proxy.api.exchange import Exchange


class Reading:
    """Whether a connection is read; holds add up."""

    __slots__ = ("_holds", "transport")

    def __init__(self) -> None:
        self._holds = 0
        self.transport: asyncio.Transport | None = None

    def hold(self) -> None:
        """Stop reading."""
        self._holds += 1
        if self._holds == 1 and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def let_go(self) -> None:
        """Take one hold back."""
        self._holds -= 1
        if self._holds == 0 and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def read_away(self) -> None:
        """Read on whatever holds there are."""
        if self._holds > 0 and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
        self._holds = 0


class Turns:
    """Whose turn it is, and who waits."""

    __slots__ = ("_is_advancing", "_reading", "_waiting", "current", "has_more", "is_clogged")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: deque[Exchange] = deque()
        self._is_advancing = False
        self.current: Exchange | None = None
        self.has_more = False
        self.is_clogged = False

    def enqueue(self, exchange: Exchange) -> None:
        """Begin an exchange, or let it wait."""
        if self.current is None and not self._waiting and not self.is_clogged:
            self.current = exchange
            exchange.begin()
        else:
            self._waiting.append(exchange)
            self.has_more = True
            self._reading.hold()

    def advance(self) -> None:
        """Begin what waits; one that is over at once is followed by the next without a deeper call."""
        if self._is_advancing:
            return
        self._is_advancing = True
        while self._waiting and self.current is None and not self.is_clogged:
            self.current = self._waiting.popleft()
            self._reading.let_go()
            self.current.begin()
        self._is_advancing = False
        self.has_more = bool(self._waiting)

    def pause_answer(self) -> None:
        """The client takes no more."""
        self.is_clogged = True
        if self.current is not None:
            self.current.pause_answer()

    def resume_answer(self) -> None:
        """The client takes more."""
        self.is_clogged = False
        if self.current is not None:
            self.current.resume_answer()
        else:
            self.advance()

    def abandon(self) -> None:
        """End all: nobody waits for answers."""
        current, self.current = self.current, None
        for exchange in (current, *self._waiting):
            if exchange is not None:
                exchange.client_lost()
        self._waiting.clear()
