"""An upstream's answer, and the head that the client gets for it.

Invariant: hop-by-hop fields end here, the body's bytes and encoding are the upstream's own, and a secret in the head
is masked like one in the body.
"""

from dataclasses import dataclass
from enum import Enum

from caisson.proxy.domain.preparation import Prepared
from caisson.proxy.domain.redaction import Secret
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request

SWITCHING_PROTOCOLS = 101
_FIRST_FINAL = 200
_BODYLESS = frozenset({204, 304})
_NO_CONTENT = 204
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"te", b"transfer-encoding", b"upgrade"})
_PROXY = b"proxy-"


class Framing(Enum):
    """How an answer's body ends."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer's head. `encoded` says that its body is compressed."""

    status: int
    reason: bytes
    headers: Headers
    framing: Framing
    encoded: bool

    @property
    def is_interim(self) -> bool:
        """Whether another answer follows (1xx but 101)."""
        return self.status < _FIRST_FINAL and self.status != SWITCHING_PROTOCOLS


def read_answer(*, status: int, reason: bytes, headers: Headers, to_head: bool) -> Answer | Refuse:
    """Read how an answer is framed."""
    framing, encoded = Framing.CLOSE, False
    for name, value in headers:
        match name.lower():
            case b"content-length":
                framing = Framing.LENGTH
            case b"transfer-encoding":
                if value.strip().lower() != b"chunked":
                    return upstream_malformed("its transfer encoding is not chunked")
                framing = Framing.CHUNKED
            case b"content-encoding":
                encoded = value.strip().lower() not in {b"", b"identity"}
    if to_head or status < _FIRST_FINAL or status in _BODYLESS:
        framing = Framing.NONE
    return Answer(status=status, reason=reason, headers=headers, framing=framing, encoded=encoded)


def check_answer(answer: Answer, prepared: Prepared) -> Refuse | None:
    """Refuse an answer that cannot be searched for the credential."""
    if prepared.secret is None or prepared.policy.trusted or not answer.encoded or answer.framing is Framing.NONE:
        return None
    return Refuse(
        reason=Reason.ENCODED_ANSWER,
        detail=f"The upstream {prepared.policy.name!r} sent a compressed answer although none was asked for; "
        "it cannot be searched for the credential.",
    )


def write_answer(answer: Answer, request: Request, *, closes: bool) -> bytes:
    """Write the head that the client gets. `closes` says that the connection ends after the answer."""
    lines = [b"HTTP/1.1 %d %b\r\n" % (answer.status, answer.reason)]
    nominated: set[bytes] = set()
    for name, value in answer.headers:
        lowered = name.lower()
        if lowered == b"connection":
            nominated.update(part.strip().lower() for part in value.split(b","))
        elif lowered not in _HOP_BY_HOP and not lowered.startswith(_PROXY):
            lines.append(b"%b: %b\r\n" % (name, value))
    nominated -= {b"close", b"keep-alive", b""}
    if nominated:
        drops = tuple(name + b":" for name in nominated)
        lines[1:] = [line for line in lines[1:] if not line.lower().startswith(drops)]
    if is_rechunked(answer, request):
        lines.append(b"Transfer-Encoding: chunked\r\n")
    if closes:
        lines.append(b"Connection: close\r\n")
    elif not request.http11:
        lines.append(b"Connection: keep-alive\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)


def write_switch(answer: Answer) -> bytes:
    """Write the head of a `101 Switching Protocols`."""
    kept = [b"%b: %b\r\n" % pair for pair in answer.headers if not pair[0].lower().startswith(_PROXY)]
    return b"".join((b"HTTP/1.1 101 %b\r\n" % answer.reason, *kept, b"\r\n"))


def write_interim(answer: Answer, secret: Secret | None) -> bytes:
    """Write the head of an interim answer."""
    kept = [b"%b: %b\r\n" % pair for pair in answer.headers if pair[0].lower() not in _HOP_BY_HOP]
    head = b"".join((b"HTTP/1.1 %d %b\r\n" % (answer.status, answer.reason), *kept, b"\r\n"))
    return head if secret is None else secret.mask(head)


def is_rechunked(answer: Answer, request: Request) -> bool:
    """Whether the body goes to the client in chunks: its end is not known beforehand, and the client knows chunks."""
    return request.http11 and answer.framing in {Framing.CHUNKED, Framing.CLOSE}


def ends_by_closing(answer: Answer, request: Request) -> bool:
    """Whether only the end of the connection tells this client where the body ends."""
    return not request.http11 and answer.framing in {Framing.CHUNKED, Framing.CLOSE}


def upstream_malformed(why: str) -> Refuse:
    """Refuse an answer that is not well-formed HTTP/1.1."""
    return Refuse(reason=Reason.UPSTREAM_MALFORMED, detail=f"The upstream's answer is malformed: {why}.")
