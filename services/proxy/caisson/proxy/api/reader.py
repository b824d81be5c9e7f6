"""Requests out of a connection's bytes.

Invariant: llhttp in its strict mode decides where a request begins and ends; nothing here is lenient. Header lines
that it has read before, in a request without a body, are known again by their bytes and not read twice.
"""

import re
from typing import Any, Protocol

import httptools
import structlog

from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import (
    Headers,
    KnownHead,
    Request,
    malformed,
    read_request,
    remember_request,
)

MAX_HEAD_BYTES = 64 << 10
_MAX_KNOWN_BYTES = 2048
_MAX_KNOWN = 1024
_END_OF_HEAD = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[!-~]*) HTTP/1\.1")

log = structlog.get_logger(__name__)


class Unreadable(Exception):
    """The bytes are not a request; `refusal` says why. The connection cannot go on."""

    def __init__(self, refusal: Refuse) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class Listener(Protocol):
    """Who is told of requests, in order."""

    def request_began(self, request: Request, refusal: Refuse | None) -> None:
        """A head is complete, and without a body the request; with a refusal it must not be carried out."""

    def request_piece(self, data: bytes) -> None:
        """Some of the body arrived."""

    def request_ended(self, trailers: Headers) -> None:
        """The body is complete."""


class KnownHeads(dict[bytes, KnownHead]):
    """Header lines by their bytes, for all connections, within bounds."""

    def learn(self, lines: bytes, head: KnownHead) -> None:
        """Keep what llhttp has read."""
        if len(self) >= _MAX_KNOWN:
            self.clear()
        self[lines] = head


class RequestReader:
    """Reads one connection."""

    def __init__(self, listener: Listener, known: KnownHeads) -> None:
        self._listener = listener
        self._known = known
        self._lines: bytes | None = None
        self._parser: Any = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: Headers = []
        self._in_head = True
        self._head_bytes = 0
        self.is_between = True

    def feed(self, data: bytes) -> bytes | None:
        """Read on. Returns None, or what follows a request that asks for another protocol.

        Raises:
            Unreadable: the connection cannot go on.
        """
        if self.is_between:
            line, _, lines = data.partition(b"\r\n")
            head = self._known.get(lines)
            match = _REQUEST_LINE.fullmatch(line) if head is not None and len(line) <= _MAX_KNOWN_BYTES else None
            if head is not None and match is not None:
                request = Request(match[1], match[2], head.headers, http11=True, keep_alive=True)
                request.request_id = head.request_id
                request.known = head
                self._listener.request_began(request, None)
                return None
            self._lines = lines
        return self._parse(data)

    def _learn(self, request: Request) -> None:
        """Keep the lines of a request that was all there was in one piece of data."""
        lines, self._lines = self._lines, None
        if (
            lines is None
            or len(lines) > _MAX_KNOWN_BYTES
            or lines.find(_END_OF_HEAD) != len(lines) - len(_END_OF_HEAD)
        ):
            return
        head = remember_request(request)
        if head is not None:
            self._known.learn(lines, head)

    def _parse(self, data: bytes) -> bytes | None:
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parser = httptools.HttpRequestParser(self)
            self._head_bytes = 0
            rest: bytes = data[upgrade.args[0] :]
            return rest
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError as error:
            raise Unreadable(malformed(str(error))) from None
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            raise Unreadable(_head_too_large())
        return None

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self.is_between = False

    def on_url(self, part: bytes) -> None:
        """Collect the target."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header, or a trailer after the body."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Tell the head."""
        target, self._target = self._target, b""
        headers, self._headers = self._headers, []
        self._in_head = False
        method = self._parser.get_method()
        keep_alive = self._parser.should_keep_alive() and method != b"CONNECT"
        request = Request(method, target, headers, http11=True, keep_alive=keep_alive)
        refusal = self._check(request)
        if refusal is not None:
            request.keep_alive = False
        elif self._lines is not None:
            self._learn(request)
        self._listener.request_began(request, refusal)

    def on_body(self, data: bytes) -> None:
        """Pass some of the body on."""
        self._listener.request_piece(data)

    def on_message_complete(self) -> None:
        """Tell the end."""
        trailers, self._headers = self._headers, []
        self._in_head = self.is_between = True
        self._head_bytes = 0
        self._listener.request_ended(trailers)

    def _check(self, request: Request) -> Refuse | None:
        version = self._parser.get_http_version()
        if version != "1.1":
            if version != "1.0":
                return malformed("only HTTP/1.1 and HTTP/1.0 are spoken here")
            request.http11 = False
        if self._head_bytes > MAX_HEAD_BYTES and _size(request) > MAX_HEAD_BYTES:
            return _head_too_large()
        return read_request(request)


def _size(request: Request) -> int:
    return len(request.target) + sum(len(name) + len(value) for name, value in request.headers)


def _head_too_large() -> Refuse:
    return Refuse(
        reason=Reason.HEAD_TOO_LARGE, detail=f"The request's target and headers exceed {MAX_HEAD_BYTES} bytes."
    )
