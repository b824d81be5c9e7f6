"""One connection to an upstream.

Invariant: an answer is complete only when its own framing says so; a connection that said anything else, or anything
more, is never used again.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
import structlog

from caisson.proxy.domain.answers import SWITCHING_PROTOCOLS, Answer, Framing, read_answer, upstream_malformed
from caisson.proxy.domain.links import Receiver
from caisson.proxy.domain.refusals import Refuse
from caisson.proxy.domain.requests import Headers

log = structlog.get_logger(__name__)


class UpstreamConnection(asyncio.Protocol):
    """A connection that carries one request at a time; `on_idle` takes it back between two."""

    def __init__(self, on_idle: Callable[["UpstreamConnection"], None]) -> None:
        self._on_idle = on_idle
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._parser: Any = None
        self._reason = b""
        self._headers: Headers = []
        self._answer: Answer | None = None
        self._to_head = False
        self._ended = False
        self._is_silent = True
        self._stays_open = False
        self._is_paused = False
        self._has_switched = False
        self.reused = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, receiver: Receiver, *, to_head: bool) -> None:
        """Take a request; `to_head` says that its answer has no body."""
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
        self._receiver = receiver
        self._answer = None
        self._to_head = to_head
        self._ended = False
        self._is_silent = True

    def write(self, data: bytes) -> None:
        """Send bytes of the request."""
        if self._transport is not None:
            self._transport.write(data)

    def pause_answer(self) -> None:
        """Stop reading."""
        if self.is_open and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()  # type: ignore[union-attr]  # is_open says so

    def resume_answer(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            if self.is_open:
                self._transport.resume_reading()  # type: ignore[union-attr]  # is_open says so

    def release(self) -> None:
        """Give it back for the next request, if it can carry one."""
        self._receiver = None
        self.resume_answer()
        if self._stays_open and self.is_open:
            self.reused = True
            self._on_idle(self)
        else:
            self.abort()

    def abort(self) -> None:
        """End it at once; the receiver is told nothing more."""
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]  # TCP connections have a full transport

    def data_received(self, data: bytes) -> None:
        """Read some of the answer."""
        self._is_silent = False
        if self._receiver is None:
            self.abort()
        elif self._has_switched:
            self._receiver.answer_piece(data)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError:
            log.exception("upstream.answer_failed")
            self._fail("it could not be passed on")
        except httptools.HttpParserError as error:
            if self._ended:
                self._stays_open = False
                self._complete()
            else:
                self._fail(str(error))
        else:
            if self._ended:
                self._complete()

    def _switch(self, first: bytes) -> None:
        self._has_switched = True
        if self._receiver is not None:
            self._receiver.switched(first)

    def _fail(self, why: str) -> None:
        receiver = self._receiver
        self.abort()
        if receiver is not None:
            receiver.answer_malformed(upstream_malformed(why))

    def _complete(self) -> None:
        receiver = self._receiver
        if receiver is not None:
            trailers, self._headers = self._headers, []
            receiver.answer_ended(trailers)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the holder, unless the end of the connection is how the answer ends."""
        receiver, self._receiver = self._receiver, None
        self._transport = None
        if receiver is None:
            return
        if error is None and self._answer is not None and self._answer.framing is Framing.CLOSE:
            self._stays_open = False
            receiver.answer_ended([])
        else:
            receiver.link_lost(silent=self._is_silent)

    def pause_writing(self) -> None:
        """Pass the pressure on."""
        if self._receiver is not None:
            self._receiver.pause_request()

    def resume_writing(self) -> None:
        """Pass the relief on."""
        if self._receiver is not None:
            self._receiver.resume_request()

    def on_status(self, reason: bytes) -> None:
        """Collect the reason phrase."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header, or a trailer after the body."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Tell the head."""
        reason, self._reason = self._reason, b""
        headers, self._headers = self._headers, []
        if self._ended or self._receiver is None:
            self._stays_open = False
            return
        status = self._parser.get_status_code()
        answer = read_answer(status=status, reason=reason, headers=headers, to_head=self._to_head)
        if isinstance(answer, Refuse):
            self._fail(answer.detail)
            return
        self._answer = answer
        self._stays_open = self._parser.should_keep_alive()
        if self._to_head and not answer.is_interim:
            self._parser = None
            self._stays_open = _promises_to_stay(answer)
            self._ended = True
        self._receiver.answered(answer)

    def on_body(self, data: bytes) -> None:
        """Pass some of the body on."""
        if self._ended or self._receiver is None:
            self._stays_open = False
        else:
            self._receiver.answer_piece(data)

    def on_message_complete(self) -> None:
        """Mark the end; it is told once the parser has come out of the data."""
        answer = self._answer
        if answer is not None and not answer.is_interim and answer.status != SWITCHING_PROTOCOLS:
            self._ended = True


def _promises_to_stay(answer: Answer) -> bool:
    return any(name.lower() in {b"content-length", b"transfer-encoding"} for name, _ in answer.headers) and not any(
        name.lower() == b"connection" and b"close" in value.lower() for name, value in answer.headers
    )
