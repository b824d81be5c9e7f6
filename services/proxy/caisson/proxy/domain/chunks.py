"""Chunked transfer coding, as written (RFC 9112, section 7.1)."""

from collections.abc import Iterable


def write_chunk(data: bytes) -> bytes:
    """Write one chunk; `data` is not empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def write_last_chunk(trailers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Write the end of a chunked body."""
    fields = b"".join(b"%b: %b\r\n" % pair for pair in trailers)
    return b"0\r\n%b\r\n" % fields
