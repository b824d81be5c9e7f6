"""A command's output, kept as a head and a tail.

Invariant: whatever a stream prints, at most the limit and one piece are kept of it, and its true length is known.
"""

from typing import Final

from caisson.common.outcome import Output

_REPLACEMENT: Final = "\ufffd"
_LONGEST_CHARACTER: Final = 4
_CONTINUATION: Final = range(0x80, 0xC0)


class HeadTail:
    """What is kept of one stream: half of `limit_bytes` from its start, half from its end."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._head_limit = limit_bytes // 2
        self._tail_limit = limit_bytes - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        # One byte more than the tail tells whether the tail starts with a line.
        keep = self._tail_limit + 1
        if len(data) >= keep:
            self._tail[:] = data[-keep:]
            return
        self._tail += data
        if len(self._tail) > 2 * keep:
            del self._tail[:-keep]

    def output(self) -> Output:
        """Return the stream as text."""
        if self.total <= self._limit:
            text, lossy = _decode(bytes(self._head + self._tail))
            return Output(text=text, bytes=self.total, lossy=lossy)
        head, head_lossy = _decode(_cut_end(bytes(self._head)))
        tail, tail_lossy = _decode(_cut_start(bytes(self._tail[-self._tail_limit - 1 :])))
        return Output(
            text=head + tail,
            bytes=self.total,
            truncated=True,
            lossy=head_lossy or tail_lossy,
            gap_at=len(head),
        )


def _decode(data: bytes) -> tuple[str, bool]:
    try:
        text = data.decode()
        lossy = "\x00" in text
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        lossy = True
    return text.replace("\x00", _REPLACEMENT), lossy


def _cut_end(data: bytes) -> bytes:
    """Cut after the last whole line, or else after the last whole character."""
    line_end = data.rfind(b"\n") + 1
    if line_end:
        return data[:line_end]
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        byte = data[-back]
        if byte in _CONTINUATION:
            continue
        return data[:-back] if _character_bytes(byte) > back else data
    return data


def _cut_start(data: bytes) -> bytes:
    """Cut the first byte, and then up to the first whole line, or else up to the first whole character.

    `data` begins one byte before what may be kept. A line that ends the stream is not given up for its own newline.
    """
    line_start = data.find(b"\n", 0, -1) + 1
    if line_start:
        return data[line_start:]
    start = 1
    while start < min(_LONGEST_CHARACTER, len(data)) and data[start] in _CONTINUATION:
        start += 1
    return data[start:]


def _character_bytes(lead: int) -> int:
    """Return how many bytes the UTF-8 character that begins with `lead` has."""
    return next((size for size, least in ((4, 0xF0), (3, 0xE0), (2, 0xC0)) if lead >= least), 1)
