"""Which run a request belongs to.

Invariant: on a bound channel it is the channel's run, whatever the request says; elsewhere the request must say it.
"""

from typing import Protocol

from caisson.proxy.domain.callers import Caller
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Request


class Contexts(Protocol):
    """The live contexts."""

    def find(self, request_id: str) -> Caller | None:
        """Return the caller if its context is in memory and alive."""

    async def look_up(self, request_id: str) -> Caller | None:
        """Ask the bucket itself, once; raise Unavailable when it cannot be asked."""

    def is_alive(self, caller: Caller) -> bool:
        """Whether the caller's context still holds."""


def identify(request: Request, bound: str | None) -> str | Refuse:
    """Return the request id that names the caller's context."""
    written = request.request_id
    if bound is None:
        if written is None:
            return unknown_context("This connection is not bound to a run and the request has no X-Request-Id")
        return written
    if written not in {None, bound}:
        return Refuse(
            reason=Reason.REQUEST_ID_MISMATCH,
            detail="This connection belongs to another run than the X-Request-Id says; leave the header out, "
            "or send the one in $REQUEST_ID.",
        )
    return bound


def unknown_context(why: str) -> Refuse:
    """Refuse a request whose run is not known, or no longer."""
    return Refuse(
        reason=Reason.CONTEXT_UNKNOWN, detail=f"{why}. A request is carried only for a run that is being worked on."
    )
