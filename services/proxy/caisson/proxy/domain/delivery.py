"""An answer on its way to the client: framed for this client, and searched for the credential.

Invariant: what the client gets are the upstream's bytes, in pieces as they came, except where a secret stood.
"""

from caisson.proxy.domain.answers import Answer, Framing, write_switch
from caisson.proxy.domain.chunks import write_chunk, write_last_chunk
from caisson.proxy.domain.frames import FrameRedactor
from caisson.proxy.domain.preparation import Prepared
from caisson.proxy.domain.redaction import Redactor, Secret
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request

_CHUNKED = Framing.CHUNKED  # looked up for every answer
_NOT_TRAILERS = (b"transfer-encoding", b"content-length", b"connection", b"trailer", b"proxy-")


def refuse_encoded(answer: Answer, prepared: Prepared) -> Refuse | None:
    """Refuse an answer that cannot be searched for the credential."""
    if prepared.secret is None or prepared.policy.trusted or answer.framing is Framing.NONE:
        return None
    return Refuse(
        reason=Reason.ENCODED_ANSWER,
        detail=f"The upstream {prepared.policy.name!r} sent a compressed answer although none was asked for; "
        "it cannot be searched for the credential.",
    )


class Delivery:
    """One answer. `closes` says that the client's connection ends after it; what is told collects until `flush`."""

    __slots__ = ("_is_chunked", "_out", "_redactor", "_secret", "closes", "echoed", "has_begun", "size_bytes")

    def __init__(self, answer: Answer, request: Request, secret: Secret | None, *, closes: bool) -> None:
        self.size_bytes = 0
        self.closes = closes
        self.has_begun = False
        self.echoed = False
        self._is_chunked = False
        self._secret = secret
        self._redactor: Redactor | None = None
        if closes or answer.framing >= _CHUNKED or not request.http11:
            head = answer.lines + self._frame(answer, request)
            self._out = [self._search(head) if self._is_chunked else head]
        else:
            self._out = [answer.lines, b"\r\n"]

    def piece(self, data: bytes) -> None:
        """Take some of the body."""
        self.size_bytes += len(data)
        if not self._is_chunked:
            self._out.append(data)
            return
        passed = self._search(data)
        if passed:
            self._out.append(write_chunk(passed))

    def flush(self) -> bytes:
        """Return what the client gets now."""
        self.has_begun = True
        data = b"".join(self._out)
        self._out = []
        return data if self._is_chunked else self._search(data)

    def end(self, trailers: Headers) -> bytes:
        """Return what the client gets last."""
        if not self._is_chunked:
            data = b"".join(self._out)
            return data if self._secret is None else self._search_last(data, self._secret)
        data = self.flush()
        held = b"" if self._redactor is None else self._redactor.finish()
        fields = [pair for pair in trailers if not pair[0].lower().startswith(_NOT_TRAILERS)]
        last = write_last_chunk(fields)
        if self._secret is not None:
            last = self._search_last(last, self._secret)
        return data + (write_chunk(held) if held else b"") + last

    def _frame(self, answer: Answer, request: Request) -> bytes:
        """Say where the body ends: by chunks where its length is not known, to an HTTP/1.0 client by closing."""
        lines = b""
        if answer.framing >= _CHUNKED:
            self._is_chunked = request.http11
            self.closes |= not request.http11
            lines = b"Transfer-Encoding: chunked\r\n" if request.http11 else b""
        if self.closes:
            lines += b"Connection: close\r\n"
        elif not request.http11:
            lines += b"Connection: keep-alive\r\n"
        return lines + b"\r\n"

    def _search(self, data: bytes) -> bytes:
        if self._secret is None:
            return data
        if self._redactor is None:
            self._redactor = Redactor(self._secret)
        passed = self._redactor.feed(data)
        self.echoed |= self._redactor.echoed
        return passed

    def _search_last(self, data: bytes, secret: Secret) -> bytes:
        whole = data if self._redactor is None else self._redactor.finish() + data
        masked = secret.mask(whole)
        self.echoed |= masked is not whole
        return masked


class TunnelDelivery:
    """What an upstream sends after it left HTTP. The client's connection ends with it."""

    __slots__ = ("_out", "_redactor", "closes", "has_begun", "size_bytes")

    def __init__(self, answer: Answer, secret: Secret | None) -> None:
        self.has_begun = True
        self.closes = True
        self.size_bytes = 0
        head = write_switch(answer)
        self._out = [head if secret is None else secret.mask(head)]
        self._redactor = None if secret is None else FrameRedactor(secret)

    @property
    def echoed(self) -> bool:
        """Whether the secret was found."""
        return self._redactor is not None and self._redactor.echoed

    def piece(self, data: bytes) -> None:
        """Take what the upstream sent."""
        self.size_bytes += len(data)
        self._out.append(data if self._redactor is None else self._redactor.feed(data))

    def flush(self) -> bytes:
        """Return what the client gets now."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def end(self, _: Headers) -> bytes:
        """Return what the client gets last."""
        return self.flush()
