"""An OTLP/HTTP receiver on loopback that keeps every span it is sent."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A span as a service told it."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    attributes: dict[str, str]


class Collector:
    """What has been told so far; `raw` is everything, as it came."""

    def __init__(self) -> None:
        self.url = ""
        self.raw = b""
        self._spans: list[Told] = []

    def of(self, trace: str) -> dict[str, Told]:
        """Return the spans of a trace by their ids."""
        return {told.span: told for told in self._spans if told.trace == trace}

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                body = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
                self.raw += body
                self._spans += _read(ExportTraceServiceRequest.FromString(body))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        writer.close()


def _read(request: ExportTraceServiceRequest) -> Iterator[Told]:
    for resource in request.resource_spans:
        named = {item.key: item.value.string_value for item in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Told(
                    service=named["service.name"].removeprefix("caisson-"),
                    name=span.name,
                    trace=span.trace_id.hex(),
                    span=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes={item.key: item.value.string_value for item in span.attributes},
                )


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Receive until the end."""
    collector = Collector()
    server = await asyncio.start_server(collector.receive, "127.0.0.1", 0)
    collector.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/traces"
    yield collector
    server.close()
