"""Requests out of a connection's bytes.

Invariant: llhttp in its strict mode decides where a request begins and ends; nothing here is lenient.
"""

from typing import Any, Protocol

import httptools
import structlog

from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request, malformed, read_request

MAX_HEAD_BYTES = 64 << 10

log = structlog.get_logger(__name__)


class Unreadable(Exception):
    """The bytes are not a request; `refusal` says why. The connection cannot go on."""

    def __init__(self, refusal: Refuse) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class Listener(Protocol):
    """Who is told of requests, in order."""

    def request_began(self, request: Request, refusal: Refuse | None) -> None:
        """A head is complete; with a refusal it must not be carried out."""

    def request_piece(self, data: bytes) -> None:
        """Some of the body arrived."""

    def request_ended(self, trailers: Headers) -> None:
        """The request is complete."""


class RequestReader:
    """Reads one connection."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
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
        request = Request(
            method=method,
            target=target,
            headers=headers,
            http11=True,
            keep_alive=self._parser.should_keep_alive() and method != b"CONNECT",
        )
        self._listener.request_began(request, self._check(request))

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
