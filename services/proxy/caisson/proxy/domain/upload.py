"""A request's body on its way to the upstream, or what follows a switch of protocols.

Invariant: pieces go up in the order they came, framed as the upstream was told; nothing is kept once a link is there.
"""

from collections.abc import Callable

from caisson.proxy.domain.chunks import write_chunk, write_last_chunk
from caisson.proxy.domain.headers import Fate, Fates
from caisson.proxy.domain.links import Link
from caisson.proxy.domain.requests import Headers, Request


class Upload:
    """One body. Before `send` it collects; afterwards it passes on."""

    def __init__(self, request: Request) -> None:
        self.size_bytes = 0
        self._length = request.length
        self._is_chunked = request.length is None
        self._pieces: list[bytes] = []
        self._trailers: Headers | None = None
        self._link: Link | None = None
        self._fates: Fates | None = None

    def piece(self, data: bytes) -> None:
        """Take some of the body."""
        self.size_bytes += len(data)
        if self._link is None:
            self._pieces.append(data)
        else:
            self._link.write(write_chunk(data) if self._is_chunked else data)

    def end(self, trailers: Headers) -> None:
        """Take the end of the body."""
        self._trailers = trailers
        self._write_end()

    def rewrite(self, rewrite: Callable[[bytes], bytes]) -> None:
        """Replace the collected body by what `rewrite` makes of it."""
        body = rewrite(b"".join(self._pieces))
        self._pieces = [body]
        self._length = len(body)
        self._is_chunked = False

    def send(self, link: Link, head: bytes, fates: Fates) -> None:
        """Send the head and what was collected, and pass on what comes; trailers meet the same fates as headers."""
        self._link = link
        self._fates = fates
        pieces, self._pieces = self._pieces, []
        if self._is_chunked:
            link.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(map(write_chunk, pieces)))
            self._write_end()
        elif self._length:
            link.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, self._length, b"".join(pieces)))
        else:
            link.write(head + b"\r\n")

    def _write_end(self) -> None:
        if self._is_chunked and self._link is not None and self._trailers is not None and self._fates is not None:
            fates = self._fates
            self._link.write(write_last_chunk(pair for pair in self._trailers if fates[pair[0]] is Fate.PASS))
