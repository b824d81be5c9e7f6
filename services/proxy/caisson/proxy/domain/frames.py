"""The credential in WebSocket frames from an upstream (RFC 6455, section 5.2).

Invariant: frame headers pass untouched and a frame is never held back beyond its own end, so a conversation cannot
stall on a message that happens to end like the beginning of a secret.
"""

from caisson.proxy.domain.redaction import Redactor, Secret

_SHORT_HEADER = 2
_LENGTH_BYTES = {126: 2, 127: 8}
_MASK_BYTES = 4


class FrameRedactor:
    """Masks a secret in the payloads of one direction of a WebSocket."""

    __slots__ = ("_header", "_redactor", "_remaining")

    def __init__(self, secret: Secret) -> None:
        self._redactor = Redactor(secret)
        self._header = bytearray()
        self._remaining = 0

    @property
    def echoed(self) -> bool:
        """Whether a secret was found."""
        return self._redactor.echoed

    def feed(self, data: bytes) -> bytes:
        """Return what may pass now."""
        passed: list[bytes] = []
        position = 0
        while position < len(data):
            if self._remaining:
                payload = data[position : position + self._remaining]
                self._remaining -= len(payload)
                position += len(payload)
                passed.append(self._redactor.feed(payload))
                if not self._remaining:
                    passed.append(self._redactor.finish())
            else:
                self._header.append(data[position])
                position += 1
                passed.append(self._read_header())
        return b"".join(passed)

    def _read_header(self) -> bytes:
        header = self._header
        if len(header) < _SHORT_HEADER:
            return b""
        declared = header[1] & 0x7F
        extended = _LENGTH_BYTES.get(declared, 0)
        masked = _MASK_BYTES if header[1] & 0x80 else 0
        if len(header) < _SHORT_HEADER + extended + masked:
            return b""
        self._remaining = int.from_bytes(header[2 : 2 + extended]) if extended else declared
        self._header = bytearray()
        return bytes(header)
