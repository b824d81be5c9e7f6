"""An admitted request, carried to its upstream, and the answer carried back.

Invariant: a request is sent twice only when the first connection had been idle before, died without one byte of an
answer, and the request has neither a body nor side effects. A link is given back only when both sides are complete.
"""

from collections.abc import Coroutine
from typing import Protocol

from caisson.proxy.api.downstream import Downstream
from caisson.proxy.domain.answers import SWITCHING_PROTOCOLS, Answer, check_answer, upstream_malformed, write_interim
from caisson.proxy.domain.decisions import Forward
from caisson.proxy.domain.delivery import Delivery, TunnelDelivery
from caisson.proxy.domain.links import Link, Links, Unreachable
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request
from caisson.proxy.domain.upload import Upload


class Owner(Protocol):
    """Who is told how the carriage ends: exactly one of the first three, once."""

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

    def __init__(
        self, owner: Owner, links: Links, downstream: Downstream, request: Request, forward: Forward, upload: Upload
    ) -> None:
        self._owner = owner
        self._links = links
        self._downstream = downstream
        self._request = request
        self._forward = forward
        self._upload = upload
        self._link: Link | None = None
        self._switch: Answer | None = None
        self._is_pressed = False
        self.delivery: Delivery | TunnelDelivery | None = None
        self.status = 0

    def start(self) -> None:
        """Send the request on an idle connection, or on a new one."""
        link = self._links.idle(self._forward.prepared.policy.origin, fresh=self._forward.has_side_effects)
        if link is None:
            self._owner.wait_for(self._connect())
        else:
            self._send(link)

    def abort(self) -> None:
        """End the link: nothing more comes."""
        link, self._link = self._link, None
        self._relieve()
        if link is not None:
            link.abort()

    def pause_answer(self) -> None:
        """The client is slower than the upstream."""
        if self._link is not None:
            self._link.pause_answer()

    def resume_answer(self) -> None:
        """The client has caught up."""
        if self._link is not None:
            self._link.resume_answer()

    def answered(self, answer: Answer) -> None:
        """Begin to answer, unless the answer is an interim one or must not pass."""
        prepared, request = self._forward.prepared, self._request
        if answer.is_interim:
            if request.http11:
                self._downstream.write(write_interim(answer, prepared.secret))
            return
        if answer.status == SWITCHING_PROTOCOLS:
            self._switch = answer
            return
        refusal = check_answer(answer, prepared)
        if refusal is not None:
            self._refuse(refusal)
            return
        closes = not (request.keep_alive and self._upload.ended) or self._downstream.is_draining
        self._begin(Delivery(answer, request, prepared.secret, closes=closes), answer)

    def answer_piece(self, data: bytes) -> None:
        """Pass some of the answer on."""
        if self.delivery is not None:
            passed = self.delivery.piece(data)
            if passed:
                self._downstream.write(passed)

    def answer_ended(self, trailers: Headers) -> None:
        """Complete the answer."""
        delivery, link, self._link = self.delivery, self._link, None
        if delivery is None or link is None:
            return
        last = delivery.end(trailers)
        if last:
            self._downstream.write(last)
        self._relieve()
        if self._upload.ended:
            link.release()
        else:
            link.abort()
        self._owner.carried(stays_open=not delivery.closes)

    def answer_malformed(self, refusal: Refuse) -> None:
        """Refuse what is not an answer."""
        self._link = None
        self._refuse(refusal)

    def switched(self, first: bytes) -> None:
        """Leave HTTP on both sides."""
        answer = self._switch
        if answer is None or not self._forward.websocket:
            self._refuse(upstream_malformed("it switched protocols without being asked to"))
            return
        self._begin(TunnelDelivery(answer, self._forward.prepared.secret), answer)
        self.answer_piece(first)
        self._downstream.switch()

    def link_lost(self, *, silent: bool) -> None:
        """Try once more where that is safe; otherwise say what happened."""
        link, self._link = self._link, None
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
        policy = self._forward.prepared.policy
        try:
            link = await self._links.connect(policy.origin)
        except Unreachable as error:
            detail = f"The upstream {policy.name!r} cannot be reached: {error}. Nothing was sent."
            self._owner.refuse(Refuse(reason=Reason.UPSTREAM_UNREACHABLE, detail=detail))
        else:
            self._send(link)

    def _send(self, link: Link) -> None:
        self._link = link
        link.begin(self, to_head=self._request.method == b"HEAD")
        self._upload.send(link, self._forward.head, self._forward.prepared.policy.fates)

    def _begin(self, delivery: Delivery | TunnelDelivery, answer: Answer) -> None:
        self.delivery = delivery
        self.status = answer.status
        self._downstream.write(delivery.head)

    def _refuse(self, refusal: Refuse) -> None:
        self.abort()
        if self.delivery is None:
            self._owner.refuse(refusal)
        else:
            self._owner.broken(refusal.reason)

    def _may_repeat(self) -> bool:
        return not self._forward.has_side_effects and not self._request.has_body

    def _relieve(self) -> None:
        if self._is_pressed:
            self._is_pressed = False
            self._downstream.let_go()
