"""The service's end of the socket to the engine's process: calls that wait for their answers, in any order."""

import asyncio
from itertools import count
from typing import Any, cast

from caisson.common.errors import Internal, Unavailable, all_errors
from caisson.memory.adapters.qdrant_edge.wire import LENGTH, Answer, Call, framed, opened


class Channel(asyncio.Protocol):
    """Invariant: every call ends, with an answer or because the other end is gone."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.lost = asyncio.Event()

    async def call(self, name: str, *arguments: Any) -> Any:
        """Have a method of the engine called, and return its result.

        Raises:
            Unavailable: when the process is gone, or the engine failed.
        """
        if self._transport is None or self.lost.is_set():
            raise Unavailable("the process of the embedded index has ended")
        number = next(self._numbers)
        answered = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._transport.write(framed(Call(number, name, arguments)))
        try:
            return await answered
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Hang up; the process ends."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Settle the calls whose answers are whole."""
        self._received += data
        while len(self._received) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            answer = opened(bytes(self._received[LENGTH.size : end]))
            del self._received[:end]
            self._settle(answer)

    def connection_lost(self, _: Exception | None) -> None:
        """Fail whatever waits."""
        self.lost.set()
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(Unavailable("the process of the embedded index ended"))

    def _settle(self, answer: Answer) -> None:
        answered = self._waiting.get(answer.number)
        if answered is None or answered.done():
            return
        if answer.code is None:
            answered.set_result(answer.result)
        else:
            answered.set_exception(all_errors().get(answer.code, Internal)(str(answer.result)))
