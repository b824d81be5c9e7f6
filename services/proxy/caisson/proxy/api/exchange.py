"""One request: who asks, what is decided, and how it ended.

Invariant: every exchange ends exactly once, with one answer or a cut connection, and with one audit record.
"""

import asyncio
from collections.abc import Coroutine
from time import monotonic

import structlog

from caisson.common.errors import Unavailable
from caisson.proxy.api.carriage import Carriage
from caisson.proxy.api.downstream import Downstream
from caisson.proxy.api.problems import write_problem
from caisson.proxy.api.reporting import report_end, report_findings, report_refusal
from caisson.proxy.api.silence import Silence
from caisson.proxy.domain.bodies import body_not_rewritable, check_size, rewrite_body
from caisson.proxy.domain.callers import Caller
from caisson.proxy.domain.decisions import Forward, decide
from caisson.proxy.domain.documents import Unrewritable
from caisson.proxy.domain.gate import Gate
from caisson.proxy.domain.identity import identify, unknown_context
from caisson.proxy.domain.places import Findings
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request
from caisson.proxy.domain.upload import Upload

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLIENT_CLOSED = 499
_CUT = 502

log = structlog.get_logger(__name__)


class Exchange:
    """One request on a client's connection; `refusal` says that its head must not be carried out."""

    __slots__ = (
        "_downstream",
        "_gate",
        "_refusal",
        "_silence",
        "_task",
        "caller",
        "carriage",
        "forward",
        "is_over",
        "is_received",
        "refused_at",
        "request",
        "started",
        "upload",
    )

    def __init__(self, gate: Gate, downstream: Downstream, request: Request, refusal: Refuse | None) -> None:
        self._gate = gate
        self._downstream = downstream
        self._refusal = refusal
        self._task: asyncio.Task[None] | None = None
        self._silence: Silence | None = None
        self.request = request
        self.is_received = request.length == 0
        self.upload = None if self.is_received and not request.upgrade else Upload(request)
        self.caller: Caller | None = None
        self.forward: Forward | None = None
        self.carriage: Carriage | None = None
        self.refused_at: str | None = None
        self.started = 0.0
        self.is_over = False

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a context or a connection."""
        return self._task is not None and not self._task.done()

    @property
    def awaits_switch(self) -> bool:
        """Whether the upstream's answer decides how to read what the client sends next."""
        return self.request.asks_for_websocket and not self.is_over

    def begin(self) -> None:
        """Find out who asks: it is this exchange's turn."""
        self.started = monotonic()
        identity = self._refusal or identify(self.request, self._downstream.bound)
        if isinstance(identity, Refuse):
            self.refuse(identity)
            return
        caller = self._gate.contexts.find(identity)
        if caller is None:
            self.wait_for(self._look_up(identity))
        else:
            self._admit(caller)

    def request_piece(self, data: bytes) -> None:
        """Take some of the body, or of what follows a switch."""
        if self.is_over or self.upload is None:
            return
        self.upload.piece(data)
        if self.forward is not None and not self.request.asks_for_websocket:
            refusal = check_size(self.upload.size_bytes, self.forward.prepared.policy)
            if refusal is not None:
                self._give_up(refusal)

    def request_ended(self, trailers: Headers) -> None:
        """Take the end of the body."""
        self.is_received = True
        if self.upload is not None and not self.is_over:
            self.upload.end(trailers)
            if self.forward is not None and self.forward.collects:
                self._rewrite(self.forward, self.upload)

    def request_malformed(self, refusal: Refuse) -> None:
        """Give up: the rest of the body cannot be read."""
        self._refusal = refusal
        self.request.keep_alive = False
        if self.started:
            self._give_up(refusal)

    def pause_answer(self) -> None:
        """The client is slower than the upstream."""
        if self.carriage is not None:
            self.carriage.pause_answer()

    def resume_answer(self) -> None:
        """The client has caught up."""
        if self.carriage is not None:
            self.carriage.resume_answer()

    def client_lost(self) -> None:
        """Give up: nobody waits for the answer."""
        if self.started and not self.is_over:
            self._end(_CLIENT_CLOSED, None)
        self.is_over = True

    def check(self, now: float) -> None:
        """End the exchange when its run is over, or when nothing has moved for too long."""
        if self.is_over or not self.started:
            return
        ended = self.has_ended()
        if ended is not None:
            self._give_up(ended)
            return
        self._silence = self._silence or Silence(self.started)
        refusal = self._silence.judge(self, self.forward, now) if self.forward is not None else None
        if refusal is not None:
            self._give_up(refusal)

    def has_ended(self) -> Refuse | None:
        """Return a refusal once the run is over: what it began goes no further."""
        if self.caller is None or self._gate.contexts.is_alive(self.caller):
            return None
        return unknown_context("The run of this request has ended, or was taken from its worker")

    def wait_for(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` while nothing more is read from the client."""
        self._downstream.hold()
        self._task = asyncio.create_task(self._guard(work))

    def refuse(self, refusal: Refuse) -> None:
        """Answer with a refusal."""
        stays_open = self.request.keep_alive and self.is_received and not self._downstream.is_draining
        report_refusal(self._gate, self, refusal, self._downstream.bound)
        with_body = self.request.method != b"HEAD"
        self._downstream.write(write_problem(refusal, closes=not stays_open, with_body=with_body))
        self._end(refusal.status, refusal.reason)
        self._downstream.exchange_over(stays_open=stays_open)

    def carried(self, *, stays_open: bool) -> None:
        """The answer is complete."""
        self._end(self.carriage.status if self.carriage else 0, None)
        self._downstream.exchange_over(stays_open=stays_open)

    def broken(self, reason: Reason) -> None:
        """The answer was begun and cannot be completed."""
        self._end(self.carriage.status if self.carriage else _CUT, reason)
        self._downstream.cut()

    async def _look_up(self, request_id: str) -> None:
        try:
            caller = await self._gate.contexts.look_up(request_id)
        except Unavailable as error:
            detail = f"Whether this run may do so cannot be found out now ({error.detail}); try again."
            self.refuse(Refuse(reason=Reason.CONTEXTS_UNAVAILABLE, detail=detail))
            return
        if caller is None:
            self.refuse(unknown_context("The run of this request is not known, or it is over"))
        else:
            self._admit(caller)

    def _admit(self, caller: Caller) -> None:
        self.caller = caller
        decision = decide(self.request, caller, self._gate.declared.policies, self._gate.vault)
        if isinstance(decision, Refuse):
            self.refuse(decision)
            return
        self.forward = decision
        if decision.findings:
            report_findings(self._gate.recorder, self, decision.findings)
        if self.upload is None or not decision.collects:
            self.carriage = Carriage(self, self._gate.links, self._downstream, decision)
            self.carriage.start()
        elif self.is_received:
            self._rewrite(decision, self.upload)
        elif self.request.expects_continue:
            self._downstream.write(_CONTINUE)

    def _rewrite(self, forward: Forward, upload: Upload) -> None:
        found: Findings = []
        try:
            upload.rewrite(lambda body: rewrite_body(body, forward.prepared, found))
        except Unrewritable as error:
            self.refuse(body_not_rewritable(str(error)))
            return
        forward.findings.extend(found)
        report_findings(self._gate.recorder, self, found)
        self.carriage = Carriage(self, self._gate.links, self._downstream, forward)
        self.carriage.start()

    def _give_up(self, refusal: Refuse) -> None:
        if self.is_over:
            return
        carriage = self.carriage
        if carriage is not None:
            carriage.abort()
        if carriage is not None and carriage.delivery is not None and carriage.delivery.has_begun:
            report_refusal(self._gate, self, refusal, self._downstream.bound)
            self.broken(refusal.reason)
        else:
            self.refuse(refusal)

    def _end(self, status: int, reason: Reason | None) -> None:
        self.is_over = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        report_end(self._gate.recorder, self, status, reason)
        carriage, self.carriage = self.carriage, None  # its reference to this exchange would keep both alive
        if carriage is not None and carriage.link is not None:
            carriage.abort()

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception:
            log.exception("exchange.failed")
            self._end(_CUT, None)
            self._downstream.cut()
        finally:
            self._downstream.let_go()
