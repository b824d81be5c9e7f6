"""A request head as it arrived: how its body is framed, and what it says about its connection.

Invariant: a `Request` has one target, one Host, at most one request id, and one unambiguous body framing; whatever
has two is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from caisson.proxy.domain.refusals import Reason, Refuse

Headers = list[tuple[bytes, bytes]]

_NO_NAMES: frozenset[bytes] = frozenset()
_WEBSOCKET = b"websocket"
_MAX_REMEMBERED = 4096


class KnownHead:
    """The header lines of a request without a body, as they stood on the wire before: read once, known again."""

    __slots__ = ("headers", "request_id")

    def __init__(self, headers: Headers, request_id: str | None) -> None:
        self.headers = headers
        self.request_id = request_id


@dataclass(slots=True)
class Request:
    """One request head. `length` is None for a chunked body; `nominated` are the names in `Connection`."""

    method: bytes
    target: bytes
    headers: Headers
    http11: bool
    keep_alive: bool
    hosts: int = 0
    length: int | None = 0
    request_id: str | None = None
    expects_continue: bool = False
    takes_trailers: bool = False
    is_encoded: bool = False
    upgrade: bytes = b""
    nominated: frozenset[bytes] = _NO_NAMES
    known: KnownHead | None = None

    @property
    def is_special(self) -> bool:
        """Whether its connection headers ask for anything."""
        return bool(self.nominated or self.expects_continue or self.takes_trailers)

    @property
    def has_body(self) -> bool:
        """Whether body bytes follow the head."""
        return self.length != 0

    @property
    def asks_for_websocket(self) -> bool:
        """Whether this is the opening handshake of RFC 6455."""
        return (
            self.upgrade == _WEBSOCKET
            and self.method == b"GET"
            and self.http11
            and not self.has_body
            and b"upgrade" in self.nominated
        )


def remember_request(request: Request) -> KnownHead | None:
    """Return what may be known again: the head of a request that is plain in every way."""
    if request.has_body or request.is_special or request.upgrade or not (request.http11 and request.keep_alive):
        return None
    return KnownHead(request.headers, request.request_id)


def read_request(request: Request) -> Refuse | None:
    """Fill in what the headers say, or refuse what they contradict."""
    for name, value in request.headers:
        reader = _readers[name]
        if reader is not None:
            refusal = reader(request, value)
            if refusal is not None:
                return refusal
    if request.hosts > 1 or (request.hosts == 0 and request.http11):
        return Refuse(
            reason=Reason.HOST_AMBIGUOUS,
            detail=f"The request has {request.hosts} Host headers; send exactly one.",
        )
    return None


def malformed(detail: str) -> Refuse:
    """Refuse a request that is not well-formed HTTP/1.1."""
    return Refuse(reason=Reason.MALFORMED_REQUEST, detail=f"The request is malformed: {detail}.")


def _read_host(request: Request, _: bytes) -> None:
    request.hosts += 1


def _read_length(request: Request, value: bytes) -> None:
    request.length = int(value)


def _read_transfer_encoding(request: Request, value: bytes) -> Refuse | None:
    if not request.http11 or value.strip().lower() != b"chunked":
        return malformed("the only transfer encoding taken is chunked, in HTTP/1.1")
    request.length = None
    return None


def _read_connection(request: Request, value: bytes) -> None:
    names = {name.strip().lower() for name in value.split(b",")} - {b"", b"close", b"keep-alive"}
    if names:
        request.nominated |= names


def _read_expect(request: Request, value: bytes) -> None:
    request.expects_continue = request.http11 and value.strip().lower() == b"100-continue"


def _read_encoding(request: Request, value: bytes) -> None:
    request.is_encoded = value.strip().lower() not in {b"", b"identity"}


def _read_te(request: Request, value: bytes) -> None:
    request.takes_trailers = b"trailers" in value.lower()


def _read_upgrade(request: Request, value: bytes) -> None:
    request.upgrade = value.strip().lower()


def _read_request_id(request: Request, value: bytes) -> Refuse | None:
    request_id = value.decode("latin-1")
    if request.request_id not in {None, request_id}:
        return Refuse(
            reason=Reason.REQUEST_ID_MISMATCH,
            detail="The request has two different X-Request-Id headers; send none, or the one in $REQUEST_ID.",
        )
    request.request_id = request_id
    return None


_Reader = Callable[[Request, bytes], Refuse | None]


class _Readers(dict[bytes, _Reader | None]):
    """How a raw header name is read (None: not at all); remembers the names it has seen, within bounds."""

    _KNOWN: Mapping[bytes, _Reader] = {
        b"host": _read_host,
        b"content-length": _read_length,
        b"content-encoding": _read_encoding,
        b"transfer-encoding": _read_transfer_encoding,
        b"connection": _read_connection,
        b"expect": _read_expect,
        b"te": _read_te,
        b"upgrade": _read_upgrade,
        b"x-request-id": _read_request_id,
    }

    def __missing__(self, name: bytes) -> _Reader | None:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        reader = self[name] = self._KNOWN.get(name.lower())
        return reader


_readers = _Readers()
