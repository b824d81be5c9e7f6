"""An answer on its way to the client: framed for this client, and searched for the credential.

Invariant: what the client gets are the upstream's bytes, in pieces as they came, except where a secret stood.
"""

from caisson.proxy.domain.answers import (
    Answer,
    Framing,
    ends_by_closing,
    is_rechunked,
    write_answer,
    write_switch,
)
from caisson.proxy.domain.chunks import write_chunk, write_last_chunk
from caisson.proxy.domain.frames import FrameRedactor
from caisson.proxy.domain.redaction import Redactor, Secret
from caisson.proxy.domain.requests import Headers, Request

_NOT_TRAILERS = (b"transfer-encoding", b"content-length", b"connection", b"trailer", b"proxy-")


class Delivery:
    """One answer. `closes` says that the client's connection ends after it."""

    __slots__ = ("_rechunked", "_redactor", "_secret", "closes", "echoed", "head", "size_bytes")

    def __init__(self, answer: Answer, request: Request, secret: Secret | None, *, closes: bool) -> None:
        self.closes = closes or ends_by_closing(answer, request)
        self.head = write_answer(answer, request, closes=self.closes)
        self.size_bytes = 0
        self.echoed = False
        self._rechunked = is_rechunked(answer, request)
        self._secret = secret
        self._redactor: Redactor | None = None
        if secret is not None:
            self.head = self._mask(self.head, secret)
            if answer.framing is not Framing.NONE and not answer.encoded:
                self._redactor = Redactor(secret)

    def piece(self, data: bytes) -> bytes:
        """Return what the client gets for some of the body, possibly nothing yet."""
        if self._redactor is not None:
            data = self._redactor.feed(data)
        return self._frame(data)

    def end(self, trailers: Headers) -> bytes:
        """Return what ends the answer."""
        held = b""
        if self._redactor is not None:
            held = self._frame(self._redactor.finish())
            self.echoed |= self._redactor.echoed
        if not self._rechunked:
            return held
        last = write_last_chunk(pair for pair in trailers if not pair[0].lower().startswith(_NOT_TRAILERS))
        return held + (last if self._secret is None else self._mask(last, self._secret))

    def _frame(self, data: bytes) -> bytes:
        self.size_bytes += len(data)
        return write_chunk(data) if data and self._rechunked else data

    def _mask(self, data: bytes, secret: Secret) -> bytes:
        masked = secret.mask(data)
        self.echoed |= masked is not data
        return masked


class TunnelDelivery:
    """What an upstream sends after it left HTTP. The connection ends with it."""

    __slots__ = ("_redactor", "closes", "head", "size_bytes")

    def __init__(self, answer: Answer, secret: Secret | None) -> None:
        self.closes = True
        self.size_bytes = 0
        head = write_switch(answer)
        self.head = head if secret is None else secret.mask(head)
        self._redactor = None if secret is None else FrameRedactor(secret)

    @property
    def echoed(self) -> bool:
        """Whether the secret was found."""
        return self._redactor is not None and self._redactor.echoed

    def piece(self, data: bytes) -> bytes:
        """Return what the client gets."""
        if self._redactor is not None:
            data = self._redactor.feed(data)
        self.size_bytes += len(data)
        return data

    def end(self, _: Headers) -> bytes:
        """Return nothing: a tunnel has no end of its own."""
        return b""
