"""Background work: relay, reconciler, deleter and housekeeper. Each goes on when a server blinks."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Protocol

import structlog
from opentelemetry import trace
from prometheus_client import Gauge

from caisson.common import subjects, tracing
from caisson.common.bus import Bus
from caisson.common.errors import CaissonError, TimedOut, Unavailable
from caisson.common.health import Progress
from caisson.common.postgres import DATABASE_TROUBLE
from caisson.gateway.domain.deleting import Deleting
from caisson.gateway.domain.leasing import Contexts, Leases
from caisson.gateway.domain.outbox import Batch, Outbox, OutboxNews, Unsent

UNSENT_EVENTS = Gauge("caisson_ledger_unsent_events", "Events that JetStream has not acknowledged")
OLDEST_UNSENT_SECONDS = Gauge(
    "caisson_ledger_oldest_unsent_seconds", "Age of the oldest event that JetStream has not acknowledged"
)
SESSIONS_LEFT = Gauge("caisson_ledger_sessions_deleting", "Sessions that are marked as deleted and not gone yet")
_TROUBLE = (*DATABASE_TROUBLE, Unavailable)
_AGE_LIMIT_S = 60
_LOOK_AT_STREAMS_S = 5.0
_HOUSEKEEPING_S = 60

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


class Relay:
    """Publishes unsent events in order inside each run, and marks them once acknowledged."""

    def __init__(
        self,
        outbox: Outbox,
        bus: Bus,
        *,
        declare_streams: Callable[[], Awaitable[None]],
        news: OutboxNews,
        poll_s: float,
        progress: Progress,
    ) -> None:
        self._outbox = outbox
        self._bus = bus
        self._declare_streams = declare_streams
        self._stream_missing = False
        self._look_at = 0.0
        self._news = news
        self._poll_s = poll_s
        self._progress = progress

    async def run(self) -> None:
        """Relay for ever: on news, and by a slow poll."""
        while True:
            try:
                full = await self._relay_batch()
                self._progress.tick()
            except _TROUBLE as error:
                log.warning("relay.interrupted", error=repr(error.__cause__ or error))
                full = False
            if self._stream_missing or monotonic() >= self._look_at:
                await self._restore_streams()
            if not full:
                await self._news.wait(timeout_s=self._poll_s)

    async def _relay_batch(self) -> bool:
        """Relay one batch; return whether it was a full one that JetStream took, so that another follows at once."""
        async with self._outbox.batch() as batch:
            counts = await asyncio.gather(*(self._send_run(events) for events in batch.in_order))
            await _mark(batch, counts)
            return batch.is_full and all(counts)

    async def _send_run(self, events: list[Unsent]) -> int:
        """Publish in order and return how many JetStream acknowledged; the rest is unknown and sent again."""
        for sent, event in enumerate(events):
            envelope = event.envelope
            subject = subjects.event(envelope.type, envelope.ids)
            context = tracing.under(event.traceparent)
            try:
                with tracer.start_as_current_span(subject.template, context=context, kind=trace.SpanKind.PRODUCER):
                    await self._bus.publish_event(
                        subject, envelope.model_dump_json().encode(), message_id=envelope.id
                    )
            except Unavailable as error:
                log.warning("relay.unacknowledged", about=event.about, seq=event.seq, reason=error.detail)
                self._stream_missing = not isinstance(error, TimedOut)
                return sent
        return len(events)

    async def _restore_streams(self) -> None:
        """Declare again what a wiped store has lost: consumers wait for it, though nobody may publish for long."""
        self._look_at = monotonic() + _LOOK_AT_STREAMS_S
        try:
            await self._declare_streams()
            self._stream_missing = False
        except CaissonError as error:
            log.warning("relay.streams_not_restored", reason=error.detail)


async def _mark(batch: Batch, counts: list[int]) -> None:
    sent = [event for events, count in zip(batch.in_order, counts, strict=True) for event in events[:count]]
    if sent:
        await batch.mark_sent(sent)


class Reconciler:
    """Decides runs whose worker is gone, and watches the outbox. Safe in every gateway at once."""

    def __init__(
        self, leases: Leases, contexts: Contexts, outbox: Outbox, *, pause_s: float, progress: Progress
    ) -> None:
        self._leases = leases
        self._contexts = contexts
        self._outbox = outbox
        self._pause_s = pause_s
        self._progress = progress
        self._oldest_s = 0.0

    async def run(self) -> None:
        """Reconcile for ever."""
        while True:
            try:
                while ended := await self._leases.recover_interrupted():
                    await asyncio.gather(*map(self._contexts.revoke, ended))
                age = await self._outbox.age()
                UNSENT_EVENTS.set(age.unsent)
                OLDEST_UNSENT_SECONDS.set(age.oldest_s)
                self._oldest_s = age.oldest_s
                self._progress.tick()
            except _TROUBLE as error:
                log.warning("reconciler.interrupted", error=repr(error.__cause__ or error))
            await asyncio.sleep(self._pause_s)

    async def check_outbox(self) -> None:
        """Raise Unavailable while events older than a minute are unsent."""
        if self._oldest_s > _AGE_LIMIT_S:
            raise Unavailable(f"events have been unsent for {self._oldest_s:.0f} s")


class Deleter:
    """Works off the sessions that are being deleted, a bounded part of each in turn. Safe in every gateway."""

    def __init__(self, deleting: Deleting, *, wake: asyncio.Event, pause_s: float, progress: Progress) -> None:
        self._deleting = deleting
        self._wake = wake
        self._pause_s = pause_s
        self._progress = progress

    async def run(self) -> None:
        """Delete for ever: when one was asked for here, and by a slow poll for what another gateway left."""
        while True:
            self._wake.clear()
            moved = False
            try:
                moved = await self._pass()
                self._progress.tick()
            except _TROUBLE as error:
                log.warning("deleter.interrupted", error=repr(error.__cause__ or error))
            if not moved:
                await _until(self._wake, self._pause_s)

    async def _pass(self) -> bool:
        """Do a part of every deletion; return whether any of them moved and is not done."""
        moved, left, after = False, 0, ""
        while doomed := await self._deleting.page(after):
            after = doomed[-1].session_id
            for one in doomed:
                part = await self._deleting.work_off(one)
                self._progress.tick()
                moved = moved or (part.moved and not part.is_last)
                left += not part.is_last
        SESSIONS_LEFT.set(left)
        return moved


class Forgetting(Protocol):
    """What is kept only for a time."""

    async def forget_expired(self) -> None:
        """Delete some of what has expired."""


class Housekeeper:
    """Deletes what has expired, slowly."""

    def __init__(self, *stores: Forgetting) -> None:
        self._stores = stores

    async def run(self) -> None:
        """Keep house for ever."""
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            for store in self._stores:
                try:
                    await store.forget_expired()
                except _TROUBLE as error:
                    log.warning("housekeeping.interrupted", error=repr(error.__cause__ or error))


async def _until(event: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return
