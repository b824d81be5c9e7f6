"""An admitted request, carried to its upstream, and the answer carried back.

Invariant: a request is sent twice only when the first connection had been idle before, died without one byte of an
answer, and the request has neither a body nor side effects. A link is given back only when both sides are complete.
"""

from collections.abc import Coroutine
from typing import Protocol

from caisson.proxy.api.downstream import Downstream
from caisson.proxy.domain.answers import (
    FIRST_FINAL,
    SWITCHING_PROTOCOLS,
    Answer,
    upstream_malformed,
    write_interim,
)
from caisson.proxy.domain.decisions import Forward
from caisson.proxy.domain.delivery import Delivery, TunnelDelivery, refuse_encoded
from caisson.proxy.domain.links import Link, Links, Unreachable
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request
from caisson.proxy.domain.upload import Upload

_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
_CLOSE = b"Connection: close\r\n"


class Owner(Protocol):
    """Whose request it is, and who is told how it ends: exactly one of `carried`, `refuse` and `broken`, once."""

    request: Request
    upload: Upload | None
    is_received: bool

    def carried(self, *, stays_open: bool) -> None:
        """The answer is complete."""

    def refuse(self, refusal: Refuse) -> None:
        """No answer was begun."""

    def broken(self, reason: Reason) -> None:
        """The answer was begun and cannot be completed."""

    def wait_for(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` while nothing more is read from the client."""


class Carriage:
    """One request at its upstream: the receiver of its link."""

    __slots__ = (
        "_downstream",
        "_forward",
        "_is_pressed",
        "_links",
        "_owner",
        "_switch",
        "delivery",
        "link",
        "status",
    )

    def __init__(self, owner: Owner, links: Links, downstream: Downstream, forward: Forward) -> None:
        self._owner = owner
        self._links = links
        self._downstream = downstream
        self._forward = forward
        self.link: Link | None = None
        self._switch: Answer | None = None
        self._is_pressed = False
        self.delivery: Delivery | TunnelDelivery | None = None
        self.status = 0

    def start(self) -> None:
        """Send the request on an idle connection, or on a new one."""
        forward = self._forward
        prepared = forward.prepared
        link = self._links.idle(prepared.policy.origin, prepared.whose, fresh=forward.route.has_side_effects)
        if link is None:
            self._owner.wait_for(self._connect())
        else:
            self._send(link)

    def abort(self) -> None:
        """End the link: nothing more comes."""
        link, self.link = self.link, None
        self._relieve()
        if link is not None:
            link.abort()

    def pause_answer(self) -> None:
        """The client is slower than the upstream."""
        if self.link is not None:
            self.link.pause_answer()

    def resume_answer(self) -> None:
        """The client has caught up."""
        if self.link is not None:
            self.link.resume_answer()

    def answered(self, answer: Answer) -> None:
        """Begin to answer, unless the answer is an interim one or must not pass."""
        if answer.status < FIRST_FINAL:
            self._pass_interim(answer)
            return
        owner, prepared = self._owner, self._forward.prepared
        if answer.encoded:
            refusal = refuse_encoded(answer, prepared)
            if refusal is not None:
                self._refuse(refusal)
                return
        closes = not (owner.request.keep_alive and owner.is_received) or self._downstream.is_draining
        self.status = answer.status
        self.delivery = Delivery(answer, owner.request, prepared.secret, closes=closes)

    def answer_piece(self, data: bytes) -> None:
        """Pass some of the answer on."""
        if self.delivery is not None:
            self.delivery.piece(data)

    def answer_paused(self) -> None:
        """Send what there is, in one write."""
        if self.delivery is not None:
            data = self.delivery.flush()
            if data:
                self._downstream.write(data)

    def answer_ended(self, trailers: Headers) -> None:
        """Complete the answer."""
        delivery, link, self.link = self.delivery, self.link, None
        if delivery is None or link is None:
            return
        self._downstream.write(delivery.end(trailers))
        if self._is_pressed:
            self._relieve()
        if self._owner.is_received and not self._has_odd_body():
            link.release()
        else:
            link.abort()
        self._owner.carried(stays_open=not delivery.closes)

    def answer_malformed(self, refusal: Refuse) -> None:
        """Refuse what is not an answer."""
        self.link = None
        self._refuse(refusal)

    def switched(self, first: bytes) -> None:
        """Leave HTTP on both sides."""
        answer = self._switch
        if answer is None or not self._owner.request.asks_for_websocket:
            self._refuse(upstream_malformed("it switched protocols without being asked to"))
            return
        self.status = answer.status
        self.delivery = TunnelDelivery(answer, self._forward.prepared.secret)
        self.delivery.piece(first)
        self.answer_paused()
        self._downstream.switch()

    def link_lost(self, *, silent: bool) -> None:
        """Try once more where that is safe; otherwise say what happened."""
        link, self.link = self.link, None
        if isinstance(self.delivery, TunnelDelivery):
            self._relieve()
            self._owner.carried(stays_open=False)
        elif silent and link is not None and link.reused and self._may_repeat():
            self._owner.wait_for(self._connect())
        else:
            self._refuse(
                Refuse(
                    reason=Reason.UPSTREAM_CLOSED,
                    detail="The upstream closed the connection before its answer was complete. "
                    "Whether the request took effect there is unknown.",
                )
            )

    def pause_request(self) -> None:
        """The upstream is slower than the client."""
        if not self._is_pressed:
            self._is_pressed = True
            self._downstream.hold()

    def resume_request(self) -> None:
        """The upstream has caught up."""
        self._relieve()

    async def _connect(self) -> None:
        prepared = self._forward.prepared
        policy = prepared.policy
        try:
            link = await self._links.connect(policy.origin, prepared.whose)
        except Unreachable as error:
            detail = f"The upstream {policy.name!r} cannot be reached: {error}. Nothing was sent."
            self._owner.refuse(Refuse(reason=Reason.UPSTREAM_UNREACHABLE, detail=detail))
        else:
            self._send(link)

    def _send(self, link: Link) -> None:
        self.link = link
        owner, forward = self._owner, self._forward
        link.begin(self, to_head=owner.request.method == b"HEAD")
        if owner.upload is None:
            link.write(forward.head + b"\r\n")
        else:
            head = forward.head + _CLOSE if self._has_odd_body() else forward.head
            owner.upload.send(link, head, forward.prepared.policy.fates)

    def _pass_interim(self, answer: Answer) -> None:
        if answer.status == SWITCHING_PROTOCOLS:
            self._switch = answer
        elif self._owner.request.http11:
            head = write_interim(answer)
            secret = self._forward.prepared.secret
            self._downstream.write(head if secret is None else secret.mask(head))

    def _refuse(self, refusal: Refuse) -> None:
        self.abort()
        if self.delivery is not None and self.delivery.has_begun:
            self._owner.broken(refusal.reason)
        else:
            self.delivery = None
            self._owner.refuse(refusal)

    def _has_odd_body(self) -> bool:
        """Whether a server may not expect the body: one that leaves it unread would take it for the next request."""
        request = self._owner.request
        return request.length != 0 and request.method not in _WITH_BODY

    def _may_repeat(self) -> bool:
        return not self._forward.route.has_side_effects and self._owner.upload is None

    def _relieve(self) -> None:
        if self._is_pressed:
            self._is_pressed = False
            self._downstream.let_go()
