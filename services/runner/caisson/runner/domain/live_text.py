"""Live output as text: pieces of a byte stream, decoded as they come.

Invariant: a text's offset is that of its first byte in the stream; what was cut away shows as a gap in the offsets.
"""

import codecs
from dataclasses import dataclass
from typing import Final

MAX_PIECE_BYTES: Final = 64 << 10
_CONTINUATION: Final = range(0x80, 0xC0)
_LONGEST_TAIL: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Decoded output and the offset of its first byte."""

    offset: int
    text: str


class LiveText:
    """One stream of one step."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = 0

    def feed(self, offset: int, data: bytes) -> Piece | None:
        """Decode the next bytes, at most `MAX_PIECE_BYTES` of them; an incomplete character waits for its rest."""
        if offset != self._end:
            self._decoder.reset()
            skipped = _leading_continuation(data)
            offset, data = offset + skipped, data[skipped:]
        data = data[:MAX_PIECE_BYTES]
        waiting = len(self._decoder.getstate()[0])
        text = self._decoder.decode(data)
        self._end = offset + len(data)
        return _piece(offset - waiting, text)

    def close(self) -> Piece | None:
        """Return what was still incomplete at the end, replaced."""
        waiting = len(self._decoder.getstate()[0])
        return _piece(self._end - waiting, self._decoder.decode(b"", final=True))


def _leading_continuation(data: bytes) -> int:
    """Count the bytes at the start that belong to a character whose beginning was cut away."""
    count = 0
    while count < min(_LONGEST_TAIL, len(data)) and data[count] in _CONTINUATION:
        count += 1
    return count


def _piece(offset: int, text: str) -> Piece | None:
    return Piece(offset=offset, text=text.replace("\x00", "\ufffd")) if text else None
