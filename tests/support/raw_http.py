"""HTTP by hand, for requests that no client library sends."""

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from caisson.stack.service_process import ServiceProcess

_WITHIN_S = 20
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class RawAnswer:
    """Status and body."""

    status: int
    body: bytes


async def exchange(
    service: ServiceProcess, method: str, target: str, head: list[str], body: bytes, *, chunked: bool = False
) -> RawAnswer:
    """Send header lines as they are (in Latin-1) with a body, and return the answer; the connection then ends."""
    url = urlsplit(service.addresses["http"])
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    lines = [f"{method} {target} HTTP/1.1", "Host: gateway", "Connection: close", framing, *head, "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    sending = asyncio.create_task(_send(writer, body, chunked=chunked))
    try:
        answer = await asyncio.wait_for(reader.read(), _WITHIN_S)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()
    status_line, _, rest = answer.partition(b"\r\n")
    return RawAnswer(status=int(status_line.split()[1]), body=rest.partition(b"\r\n\r\n")[2])


async def _send(writer: asyncio.StreamWriter, body: bytes, *, chunked: bool) -> None:
    for start in range(0, len(body), _CHUNK_BYTES):
        part = body[start : start + _CHUNK_BYTES]
        writer.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
