"""Answers out of an upstream's bytes.

Invariant: llhttp, in its strict mode, says whether a head is well-formed and where a body ends; only then is it told.
"""

from typing import Any

import httptools

from caisson.proxy.domain.answers import (
    FIRST_FINAL,
    SWITCHING_PROTOCOLS,
    Answer,
    Framing,
    read_answer,
    upstream_malformed,
)
from caisson.proxy.domain.known_answers import KnownAnswers
from caisson.proxy.domain.links import Receiver
from caisson.proxy.domain.refusals import Refuse
from caisson.proxy.domain.requests import Headers

_END_OF_HEAD = b"\r\n\r\n"
_MAX_HEAD_BYTES = 256 << 10
_STATUS = slice(9, 12)
_NO_STATUS = upstream_malformed("it does not begin with an HTTP/1 status line")
_NO_TRAILERS: Headers = []
_CHUNKED = Framing.CHUNKED  # looked up for every answer
_MAX_MISSES = 8
"""In a row: an upstream whose heads are always new is not worth looking them up."""


class Unreadable(Exception):
    """The bytes are not an answer; `refusal` says why."""

    def __init__(self, refusal: Refuse) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class AnswerReader:
    """Reads one connection, one answer after another.

    After `feed`: `has_ended` says that the answer is complete, `stays_open` that another may follow it, `switched`
    holds what came behind a `101`, `trailers` the fields that came after the body.
    """

    _receiver: Receiver

    def __init__(self, known: KnownAnswers) -> None:
        self._known = known
        self._misses = 0
        self._plain: Any = httptools.HttpResponseParser(self)
        self._parser = self._plain
        self._to_head = False
        self._partial = b""
        self.trailers = _NO_TRAILERS
        self.answer: Answer | None = None
        self.has_ended = False
        self.stays_open = False
        self.switched: bytes | None = None

    def begin(self, receiver: Receiver, *, to_head: bool) -> None:
        """Await an answer; `to_head` says that it has no body."""
        self._receiver = receiver
        self._to_head = to_head
        self.answer = None
        self.has_ended = False

    def feed(self, data: bytes) -> None:
        """Read on, and tell the receiver.

        Raises:
            Unreadable: the connection cannot go on.
        """
        begins = self.answer is None and not self._partial and not self._to_head and self._misses < _MAX_MISSES
        if begins:
            recalled = self._known.recall(data)
            if recalled is not None:
                self._tell(*recalled)
                return
            self._misses += 1
        try:
            if self.answer is None:
                data = self._read_heads(self._partial + data if self._partial else data)
            if data:
                self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError as error:
            if not self.has_ended:
                raise Unreadable(upstream_malformed(str(error))) from None
            self.stays_open = False
        if begins and self.has_ended and self.stays_open and self.answer is not None:
            self._known.learn(data, self.answer)

    def _tell(self, answer: Answer, body: bytes) -> None:
        self._misses = 0
        self.answer = answer
        self.stays_open = True
        self.has_ended = True
        self.trailers = _NO_TRAILERS
        self._receiver.answered(answer)
        if body:
            self._receiver.answer_piece(body)

    def on_message_begin(self) -> None:
        """Note that more comes than the answer."""
        if self.has_ended:
            self.stays_open = False

    def on_body(self, data: bytes) -> None:
        """Tell some of the body; what comes behind the answer belongs to nobody."""
        if not self.has_ended:
            self._receiver.answer_piece(data)

    def on_message_complete(self) -> None:
        """Note the end of a final answer."""
        if self.answer is not None:
            self.has_ended = True

    def _read_heads(self, data: bytes) -> bytes:
        """Read interim heads and the final one; return the final one with what follows, for its parser."""
        while data:
            end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
            if end < len(_END_OF_HEAD):
                break
            head = data[:end]
            status = head[_STATUS]
            answer = read_answer(head, int(status), to_head=self._to_head) if status.isdigit() else _NO_STATUS
            if isinstance(answer, Refuse):
                raise Unreadable(answer)
            if answer.status >= FIRST_FINAL:
                self._partial = b""
                self.answer = answer
                self.stays_open = answer.stays_open
                self._parser = self._choose_parser(answer)
                self._receiver.answered(answer)
                return data
            data = data[end:]
            self._tell_interim(head, answer)
            if answer.status == SWITCHING_PROTOCOLS:
                self.switched = data
                return b""
        self._partial = data
        if len(data) > _MAX_HEAD_BYTES:
            raise Unreadable(upstream_malformed("its head is too large"))
        return b""

    def _choose_parser(self, answer: Answer) -> Any:
        self.trailers = _NO_TRAILERS
        if self._to_head:
            return httptools.HttpResponseParser(_Head(self))
        if answer.framing is not _CHUNKED:
            return self._plain
        fields = _Fields(self)
        self.trailers = fields.told
        return httptools.HttpResponseParser(fields)

    def _tell_interim(self, head: bytes, answer: Answer) -> None:
        try:
            self._plain.feed_data(head)
        except httptools.HttpParserUpgrade:
            self.answer = answer
        if (self.answer is None) == (answer.status == SWITCHING_PROTOCOLS):
            raise Unreadable(upstream_malformed("it switches to no protocol"))
        self._receiver.answered(answer)


class _Fields:
    """A parser's listener that keeps what follows the body; told only where there can be trailers: it costs."""

    def __init__(self, reader: AnswerReader) -> None:
        self.told: Headers = []
        self.on_message_begin = reader.on_message_begin
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        self.told.append((name, value))

    def on_headers_complete(self) -> None:
        self.told.clear()


class _Head:
    """A parser's listener for an answer to HEAD, which ends with its head whatever that promises."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader

    def on_headers_complete(self) -> None:
        self._reader.has_ended = True

    def on_body(self, _: bytes) -> None:
        self._reader.stays_open = False
