"""One watch over the contexts bucket.

Invariant: it is live only while its consumer exists, has lost no message, and has delivered the whole bucket. In any
doubt it is not sound, and another is built.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Final

import nats.errors
import nats.js.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from pydantic import ValidationError

from caisson.common.bus import Bus
from caisson.common.contexts import RunContext
from caisson.common.subjects import CONTEXTS_BUCKET, CONTEXTS_STREAM
from caisson.proxy.domain.registry import Registry

SUBJECTS: Final = f"$KV.{CONTEXTS_BUCKET}."
NATS_ERRORS: Final = (nats.errors.Error, nats.js.errors.Error, TimeoutError, ConnectionError)
_MARKERS = ("KV-Operation", "Nats-Marker-Reason")
_SNAPSHOT_LIMIT_S = 10.0
_ABANDONED_AFTER_S = 30.0
_STALE_AFTER_S = 5.0

log = structlog.get_logger(__name__)


class ContextsWatch:
    """One ephemeral consumer that delivers the last value of each key, and every change after."""

    def __init__(self, bus: Bus, registry: Registry) -> None:
        self._bus = bus
        self._registry = registry
        self._jetstream = bus.jetstream
        self._listed = asyncio.Event()
        self._received = 0
        self._promised = 0
        self._has_gap = False
        self._received_before = 0
        self._sound_at = 0.0
        self._consumer = ""
        self._subscription: Subscription | None = None

    @property
    def is_live(self) -> bool:
        """Whether everything was listed and the consumer was found well lately."""
        return self._listed.is_set() and not self._has_gap and monotonic() - self._sound_at < _STALE_AFTER_S

    async def begin(self) -> None:
        """Create the consumer and wait until it has listed the bucket."""
        inbox = self._bus.connection.new_inbox()
        self._subscription = await self._bus.connection.subscribe(inbox, cb=self._deliver)
        consumer = await self._jetstream.add_consumer(
            CONTEXTS_STREAM,
            ConsumerConfig(
                deliver_subject=inbox,
                deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
                ack_policy=AckPolicy.NONE,
                filter_subject=SUBJECTS + ">",
                inactive_threshold=_ABANDONED_AFTER_S,
                mem_storage=True,
            ),
        )
        self._consumer = consumer.name
        if not consumer.num_pending and not (consumer.delivered and consumer.delivered.consumer_seq):
            self._listed.set()
        async with asyncio.timeout(_SNAPSHOT_LIMIT_S):
            await self._listed.wait()
        self._sound_at = monotonic()
        self._registry.end_snapshot()

    async def is_sound(self) -> bool:
        """Whether the consumer exists and what it had delivered at the last look has arrived, or is arriving."""
        is_stuck = self._received < self._promised and self._received == self._received_before
        self._received_before = self._received
        if self._has_gap or is_stuck:
            return False
        try:
            info = await self._jetstream.consumer_info(CONTEXTS_STREAM, self._consumer)
        except nats.js.errors.NotFoundError:
            return False
        self._promised = info.delivered.consumer_seq if info.delivered else 0
        self._sound_at = monotonic()
        return True

    async def end(self) -> None:
        """Stop listening; the server drops a consumer that nobody listens to."""
        if self._subscription is not None:
            with suppress(*NATS_ERRORS):
                await self._subscription.unsubscribe()

    async def _deliver(self, message: Msg) -> None:
        metadata = message.metadata
        self._received += 1
        if metadata.sequence.consumer != self._received:
            self._has_gap = True
            return
        request_id = message.subject.removeprefix(SUBJECTS)
        context = read_value(request_id, message.headers, message.data)
        self._registry.receive(request_id, metadata.sequence.stream, context)
        if not metadata.num_pending:
            self._listed.set()


def read_value(request_id: str, headers: Mapping[str, str] | None, data: bytes) -> RunContext | None:
    """Read a stored value; a marker, or what is not a context of that id, is none."""
    if headers and any(name in headers for name in _MARKERS):
        return None
    try:
        context = RunContext.model_validate_json(data)
    except ValidationError as error:
        log.warning("contexts.value_invalid", request_id=request_id, errors=error.error_count())
        return None
    if context.request_id != request_id:
        log.warning("contexts.value_misplaced", request_id=request_id)
        return None
    return context
