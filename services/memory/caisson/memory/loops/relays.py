"""Both relays, in every replica. Each goes on when a server blinks."""

import asyncio
from typing import Protocol

import structlog
from prometheus_client import Gauge

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import TimedOut, Unavailable
from caisson.common.health import Progress
from caisson.memory.domain.relaying import FactOutbox, IndexOutbox
from caisson.memory.loops.trouble import TROUBLE

INDEX_WAITING = Gauge("caisson_memory_index_waiting", "Memories whose points may differ from their rows")
INDEX_FAILING = Gauge("caisson_memory_index_failing", "Memories that the index refused again and again")
INDEX_OLDEST_SECONDS = Gauge("caisson_memory_index_oldest_seconds", "How long the oldest of them has waited")
UNSENT_FACTS = Gauge("caisson_memory_unsent_events", "Events that JetStream has not acknowledged")
OLDEST_UNSENT_SECONDS = Gauge("caisson_memory_oldest_unsent_seconds", "Age of the oldest of them")

_LEASED_AT_ONCE = 64
_AGE_LIMIT_S = 60.0

log = structlog.get_logger(__name__)


class Relaying(Protocol):
    """What brings the index up with the store."""

    async def relay(self, limit: int) -> int:
        """Do the oldest due work and return how much was taken."""


class IndexRelay:
    """Turns the indexer: on news, and by a slow poll."""

    def __init__(
        self, relaying: Relaying, outbox: IndexOutbox, *, wake: asyncio.Event, poll_s: float, progress: Progress
    ) -> None:
        self._relaying = relaying
        self._outbox = outbox
        self._wake = wake
        self._poll_s = poll_s
        self._progress = progress
        self._oldest_s = 0.0

    async def run(self) -> None:
        """Relay for ever."""
        while True:
            self._wake.clear()
            taken = 0
            try:
                taken = await self._relaying.relay(_LEASED_AT_ONCE)
            except TROUBLE as error:
                log.warning("index_relay.interrupted", error=repr(error))
            await self._measure()
            if taken < _LEASED_AT_ONCE:
                await _wait(self._wake, self._poll_s)

    async def check(self) -> None:
        """Raise Unavailable while work older than a minute waits."""
        if self._oldest_s > _AGE_LIMIT_S:
            raise Unavailable(f"the index is {self._oldest_s:.0f} s behind the store")

    async def _measure(self) -> None:
        try:
            backlog = await self._outbox.backlog()
        except TROUBLE as error:
            log.warning("index_relay.unmeasured", error=repr(error))
            return
        INDEX_WAITING.set(backlog.waiting)
        INDEX_FAILING.set(backlog.failing)
        INDEX_OLDEST_SECONDS.set(backlog.oldest_s)
        self._oldest_s = backlog.oldest_s
        self._progress.tick()


class FactRelay:
    """Publishes facts and drops them once acknowledged."""

    def __init__(
        self, outbox: FactOutbox, bus: Bus, *, wake: asyncio.Event, poll_s: float, progress: Progress
    ) -> None:
        self._outbox = outbox
        self._bus = bus
        self._wake = wake
        self._poll_s = poll_s
        self._progress = progress
        self._oldest_s = 0.0

    async def run(self) -> None:
        """Relay for ever."""
        while True:
            self._wake.clear()
            more = False
            try:
                more = await self._relay_batch()
                backlog = await self._outbox.backlog()
                UNSENT_FACTS.set(backlog.waiting)
                OLDEST_UNSENT_SECONDS.set(backlog.oldest_s)
                self._oldest_s = backlog.oldest_s
                self._progress.tick()
            except TROUBLE as error:
                log.warning("fact_relay.interrupted", error=repr(error))
            if not more:
                await _wait(self._wake, self._poll_s)

    async def check(self) -> None:
        """Raise Unavailable while facts older than a minute are unsent."""
        if self._oldest_s > _AGE_LIMIT_S:
            raise Unavailable(f"events have been unsent for {self._oldest_s:.0f} s")

    async def _relay_batch(self) -> bool:
        """Relay one batch; return whether it was a full one that JetStream took."""
        async with self._outbox.batch() as batch:
            taken = await asyncio.gather(*map(self._send, batch.facts))
            sent = [fact for fact, acknowledged in zip(batch.facts, taken, strict=True) if acknowledged]
            if sent:
                await batch.mark_sent(sent)
            return batch.is_full and all(taken)

    async def _send(self, fact: Envelope) -> bool:
        try:
            await self._bus.publish_event(
                subjects.event(fact.type, fact.ids), fact.model_dump_json().encode(), message_id=fact.id
            )
        except (TimedOut, Unavailable) as error:
            log.warning("fact_relay.unacknowledged", event_id=fact.id, reason=error.detail)
            return False
        return True


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return
