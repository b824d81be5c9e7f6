"""A TCP relay that loses answers: the request arrives and takes effect, the caller never hears of it."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class CuttingRelay:
    """Relays connections to `upstream`; `lose` counts the answers that are still to be lost, `lost` those that were.

    `cut()` breaks every open connection at once.
    """

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname, parts.port)
        self._writers: set[asyncio.StreamWriter] = set()
        self.lose = 0
        self.lost = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._upstream)
        self._writers |= {writer, back}
        answers = asyncio.create_task(self._answers(there, writer))
        try:
            while data := await reader.read(65536):
                back.write(data)
        except ConnectionError:
            pass
        finally:
            back.transport.abort()
            await answers
            self._writers -= {writer, back}
            writer.transport.abort()

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await there.read(65536):
                if self.lose > 0:
                    self.lose -= 1
                    self.lost += 1
                    writer.transport.abort()
                    return
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
