"""Connections to upstreams, as the exchanges need them.

Invariant: a link carries one request at a time, and it is handed on to the next only after both sides of that request
are complete.
"""

from typing import Protocol

from caisson.proxy.domain.answers import Answer
from caisson.proxy.domain.policies import Origin
from caisson.proxy.domain.refusals import Refuse
from caisson.proxy.domain.requests import Headers

Whose = tuple[str, bytes]
"""For whom a link may be used again: a tenant and its credential. An upstream that loses the framing of a connection
(one that does not read a body, or answers twice) then confuses requests of one caller only, never of two tenants."""


class Unreachable(Exception):
    """No connection could be made in time. Nothing was sent."""


class Receiver(Protocol):
    """What the holder of a link is told."""

    def answered(self, answer: Answer) -> None:
        """An answer's head arrived, interim ones included. What is sent of it must wait for the next call here."""

    def answer_piece(self, data: bytes) -> None:
        """Some of the body arrived."""

    def answer_paused(self) -> None:
        """All that has arrived was told, and more will come."""

    def answer_ended(self, trailers: Headers) -> None:
        """The answer is complete."""

    def answer_malformed(self, refusal: Refuse) -> None:
        """What arrived is not an answer; the link is gone."""

    def switched(self, first: bytes) -> None:
        """The upstream left HTTP after its 101; `first` came behind it. What follows comes as pieces."""

    def link_lost(self, *, silent: bool) -> None:
        """The connection ended before the answer did; `silent` says that it had not sent one byte of it."""

    def pause_request(self) -> None:
        """The upstream is slower than the client."""

    def resume_request(self) -> None:
        """The upstream has caught up."""


class Link(Protocol):
    """One connection, held by one exchange."""

    @property
    def reused(self) -> bool:
        """Whether it carried another request before: it may have been closed at the other end meanwhile."""

    def begin(self, receiver: Receiver, *, to_head: bool) -> None:
        """Take a request; `to_head` says that its answer has no body."""

    def write(self, data: bytes) -> None:
        """Send bytes of the request."""

    def pause_answer(self) -> None:
        """Stop reading: the client is slower than the upstream."""

    def resume_answer(self) -> None:
        """Read on."""

    def release(self) -> None:
        """Give it back for the next request, if it can carry one."""

    def abort(self) -> None:
        """End it at once; the receiver is told nothing more."""


class Links(Protocol):
    """Where links come from."""

    def idle(self, origin: Origin, whose: Whose, *, fresh: bool) -> Link | None:
        """Return a connection that only the same caller used; `fresh`: hardly closed at the other end meanwhile."""

    async def connect(self, origin: Origin, whose: Whose) -> Link:
        """Open a connection; raise Unreachable."""
