"""Durable consumers: facts that one service must act upon, worked on by any of its replicas.

Invariant: a fact is acknowledged only once its work is done; until then it comes again, later and later.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import nats.errors
import nats.js.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from caisson.common import metrics
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope, open_envelope
from caisson.common.errors import CaissonError, InvalidInput
from caisson.common.health import Progress
from caisson.common.postgres import DATABASE_TROUBLE
from caisson.common.streams import ACK_WAIT_S, durable
from caisson.common.subjects import EVENTS_STREAM, Subject

Work = Callable[[Envelope], Awaitable[None]]
"""What is to be done about a fact. It may be done twice."""

_RETRY_S = 1.0
_FETCH_S = 5.0
_WORK_LIMIT_S = 600
_DELAYS_S = (1, 5, 30, 120, 600)
_NATS_ERRORS = (nats.errors.Error, nats.js.errors.Error, TimeoutError)
_EXPECTED = (CaissonError, TimeoutError, *DATABASE_TROUBLE)

log = structlog.get_logger(__name__)


class DurableConsumer:
    """Works off the facts of one subject, one at a time. Whoever made its stream may come later than it."""

    def __init__(self, bus: Bus, subject: Subject, *, name: str, work: Work, progress: Progress) -> None:
        self._bus = bus
        self._config = durable(name, subject)
        self._name = name
        self._work = work
        self._progress = progress

    async def run(self) -> None:
        """Work for ever; a consumer or a stream that is missing is waited for, or made again."""
        while True:
            try:
                await self._follow()
            except _NATS_ERRORS as error:
                log.warning("consumer.interrupted", consumer=self._name, reason=repr(error))
            await asyncio.sleep(_RETRY_S)

    async def _follow(self) -> None:
        jetstream = self._bus.jetstream
        await jetstream.add_consumer(EVENTS_STREAM, self._config)
        subscription = await jetstream.pull_subscribe_bind(self._name, EVENTS_STREAM)
        try:
            while True:
                await self._take(jetstream, subscription)
                self._progress.tick()
        finally:
            await subscription.unsubscribe()

    async def _take(self, jetstream: JetStreamContext, subscription: JetStreamContext.PullSubscription) -> None:
        """Handle the next fact; where none comes, see that the consumer is still there."""
        try:
            [message] = await subscription.fetch(1, timeout=_FETCH_S)
        except (nats.errors.TimeoutError, TimeoutError):
            await jetstream.consumer_info(EVENTS_STREAM, self._name)
            return
        async with self._kept(message):
            await self._handle(message)

    async def _handle(self, message: Msg) -> None:
        try:
            _, envelope = open_envelope(message.subject, message.data)
        except InvalidInput as error:
            metrics.MISADDRESSED.labels(service=self._name).inc()
            log.warning("consumer.refused", consumer=self._name, reason=error.detail)
            await message.term()
            return
        try:
            async with asyncio.timeout(_WORK_LIMIT_S):
                await self._work(envelope)
        except asyncio.CancelledError:
            await asyncio.shield(message.nak())
            raise
        except Exception as error:
            delay_s = _DELAYS_S[min(message.metadata.num_delivered, len(_DELAYS_S)) - 1]
            metrics.WORK_FAILED.labels(consumer=self._name).inc()
            log.warning(
                "consumer.work_failed",
                consumer=self._name,
                fact=envelope.id,
                again_in_s=delay_s,
                error=repr(error),
                exc_info=not isinstance(error, _EXPECTED),
            )
            await message.nak(delay=delay_s)
            return
        await message.ack()

    @asynccontextmanager
    async def _kept(self, message: Msg) -> AsyncIterator[None]:
        """Keep the fact this replica's own for as long as the work lasts."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(ACK_WAIT_S / 3)
                await message.in_progress()
                self._progress.tick()

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
