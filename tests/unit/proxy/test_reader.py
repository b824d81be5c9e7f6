"""Header lines that are known again mean exactly what they meant when llhttp read them."""

from contextlib import suppress
from dataclasses import asdict

import pytest

from caisson.proxy.api.reader import KnownHeads, RequestReader, Unreadable
from caisson.proxy.domain.refusals import Refuse
from caisson.proxy.domain.requests import Headers, Request


class Heard:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.requests: list[tuple[Request, Refuse | None]] = []
        self.body = b""
        self.trailers: Headers = []

    def request_began(self, request: Request, refusal: Refuse | None) -> None:
        self.requests.append((request, refusal))

    def request_piece(self, data: bytes) -> None:
        self.body += data

    def request_ended(self, trailers: Headers) -> None:
        self.trailers += trailers


LINES = b"Host: a\r\nX-Request-Id: req_1\r\nAccept: */*\r\nX-Odd:  two  \r\n\r\n"
FIRST = b"GET /one?x=1 HTTP/1.1\r\n" + LINES


def read(known: KnownHeads, *pieces: bytes) -> Heard:
    heard = Heard()
    reader = RequestReader(heard, known)
    for piece in pieces:
        reader.feed(piece)
    return heard


def test_a_known_head_is_read_like_an_unknown_one() -> None:
    known = KnownHeads()
    read(known, FIRST)
    assert list(known) == [LINES]
    for raw in (FIRST, b"POST /two HTTP/1.1\r\n" + LINES, b"GET /a\\b?c#d HTTP/1.1\r\n" + LINES):
        [(fresh, _)] = read(KnownHeads(), raw).requests
        [(recalled, refusal)] = read(known, raw).requests
        assert recalled.known is not None
        assert refusal is None
        shown = {name: value for name, value in asdict(recalled).items() if name not in {"known", "hosts"}}
        assert shown == {name: value for name, value in asdict(fresh).items() if name not in {"known", "hosts"}}


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
        b"POST /one HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /one HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET /one HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET /one HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        b"GET /one HTTP/1.1\r\n\r\n",
        b"GET /one HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /one HTTP/1.0\r\nHost: a\r\n\r\n",
        FIRST + FIRST,
        b"GET /one HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 4000 + b"\r\n\r\n",
    ],
)
def test_only_a_plain_head_on_its_own_is_kept(raw: bytes) -> None:
    known = KnownHeads()
    with suppress(Unreadable):
        read(known, raw)
    assert known == {}


def test_a_head_in_pieces_is_not_taken_for_a_known_one() -> None:
    known = KnownHeads()
    read(known, FIRST)
    for cut in range(1, len(FIRST)):
        heard = read(known, FIRST[:cut], FIRST[cut:])
        assert [request.target for request, _ in heard.requests] == [b"/one?x=1"]
        assert heard.requests[0][0].known is None


def test_what_is_known_does_not_excuse_a_bad_request_line() -> None:
    known = KnownHeads()
    read(known, FIRST)
    for line in (b"GET /one HTTP/1.1 x", b"GET /\x80 HTTP/1.1", b"BREW /one HTTP/1.1", b"GET /one HTTP/3.1"):
        with pytest.raises(Unreadable):
            read(known, line + b"\r\n" + LINES)
    with pytest.raises(Unreadable):
        read(known, b"GET ", FIRST)


def test_requests_on_one_connection_may_be_known_and_unknown_by_turns() -> None:
    known = KnownHeads()
    other = FIRST.replace(b"Accept", b"Refuse")
    body = b"POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    heard = read(known, FIRST, other, FIRST, body, FIRST, body[:-1], body[-1:], FIRST)
    assert [request.method for request, _ in heard.requests] == [b"GET"] * 3 + [b"POST", b"GET"] + [b"POST", b"GET"]
    assert heard.body == b"abcabc"
