"""A stream that has nothing to tell says so, so that no proxy in between takes it for dead."""

import asyncio
from typing import cast

from caisson.common.ids import RunId
from caisson.gateway.api.event_stream import COMMENT_EVERY_S, EventStream
from caisson.gateway.domain.runs import EventRecord, News, Runs


class SilentRuns:
    """Runs of which nothing is ever told."""

    async def events(self, *_: object, **__: object) -> list[EventRecord]:
        return []


class NoNews:
    """News that never comes; waiting for it takes no time."""

    async def next(self, **_: object) -> bool:
        await asyncio.sleep(0)
        return False


async def read(*, comment_every_s: float, frames: int) -> list[bytes]:
    stopping = asyncio.Event()
    runs, news = cast("Runs", SilentRuns()), cast("News", NoNews())
    stream = EventStream(runs, news, stopping, RunId("run_1"), 0, comment_every_s=comment_every_s)
    told = []
    async for frame in stream.frames():
        told.append(frame)
        if len(told) == frames:
            stopping.set()
    return told


async def test_a_silent_stream_gets_a_comment_in_every_interval() -> None:
    assert COMMENT_EVERY_S == 15
    began = asyncio.get_running_loop().time()
    assert await read(comment_every_s=0.02, frames=5) == [b": still here\n\n"] * 5
    assert asyncio.get_running_loop().time() - began >= 0.1
