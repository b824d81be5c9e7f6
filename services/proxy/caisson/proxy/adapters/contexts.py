"""The contexts bucket in NATS: watched into memory, with one point read on a miss.

Invariant: a miss is answered "unknown" only while a live watch vouches for it; otherwise it is "cannot be told now".
"""

import asyncio
import re
from time import monotonic

import nats.js.errors
import structlog

from caisson.common.bus import Bus
from caisson.common.errors import Unavailable
from caisson.common.subjects import CONTEXTS_STREAM
from caisson.proxy.adapters.contexts_watch import NATS_ERRORS, SUBJECTS, ContextsWatch, read_value
from caisson.proxy.domain.callers import Caller
from caisson.proxy.domain.registry import Registry

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_RETRY_S = 0.5

log = structlog.get_logger(__name__)


class NatsContexts:
    """The contexts as one proxy sees them."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._registry = Registry(monotonic)
        self._watch: ContextsWatch | None = None
        self._reads: dict[str, asyncio.Task[bool]] = {}
        self.find = self._registry.find
        self.is_alive = self._registry.is_alive

    async def follow(self) -> None:
        """Keep a watch, for ever."""
        while True:
            try:
                await self._follow_once()
            except NATS_ERRORS as error:
                log.warning("contexts.watch_broken", reason=repr(error))
            finally:
                self._watch = None
            self._registry.reap()
            await asyncio.sleep(_RETRY_S)

    async def look_up(self, request_id: str) -> Caller | None:
        """Ask the bucket itself; callers that ask for the same at once share the answer.

        Raises:
            Unavailable: when the bucket cannot be asked, or the watch cannot tell what its answer means.
        """
        if not _REQUEST_ID.fullmatch(request_id):
            return None
        reading = self._reads.get(request_id)
        if reading is None:
            reading = self._reads[request_id] = asyncio.create_task(self._read(request_id))
            reading.add_done_callback(lambda _: self._reads.pop(request_id, None))
        if not await asyncio.shield(reading):
            raise Unavailable("the contexts cannot be read")
        caller = self.find(request_id)
        if caller is None:
            await self.check()
        return caller

    async def check(self) -> None:
        """Raise Unavailable unless the watch is live; for readiness."""
        if self._watch is None or not self._watch.is_live:
            raise Unavailable("the contexts are not being watched")

    async def _follow_once(self) -> None:
        jetstream = self._bus.jetstream
        try:
            created = (await jetstream.stream_info(CONTEXTS_STREAM)).created
        except nats.js.errors.NotFoundError:
            log.warning("contexts.bucket_missing")
            return
        self._registry.begin_snapshot(str(created))
        watch = self._watch = ContextsWatch(self._bus, self._registry)
        try:
            await watch.begin()
            while await watch.is_sound():
                self._registry.reap()
                await asyncio.sleep(_RETRY_S)
            log.warning("contexts.watch_lost")
        finally:
            await watch.end()

    async def _read(self, request_id: str) -> bool:
        try:
            message = await self._bus.jetstream.get_last_msg(CONTEXTS_STREAM, SUBJECTS + request_id, direct=True)
        except nats.js.errors.NotFoundError:
            return True
        except NATS_ERRORS as error:
            log.warning("contexts.unreadable", reason=repr(error))
            return False
        context = read_value(request_id, message.headers, message.data or b"")
        self._registry.read(request_id, message.seq or 0, context)
        return True
