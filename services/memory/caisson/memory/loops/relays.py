"""Both relays, in every replica. Each goes on when a server blinks.

Invariant: a relay is ready while it gets on, however much waits: what waits is told by metrics.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

import structlog
from prometheus_client import Gauge

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import TimedOut, Unavailable
from caisson.common.health import Progress
from caisson.memory.domain.relaying import Backlog, FactOutbox, IndexOutbox, Relayed
from caisson.memory.loops.trouble import TROUBLE

INDEX_WAITING = Gauge("caisson_memory_index_waiting", "Memories whose points may differ from their rows")
INDEX_FAILING = Gauge("caisson_memory_index_failing", "Memories that the index refused again and again")
INDEX_OLDEST_SECONDS = Gauge("caisson_memory_index_oldest_seconds", "How long the oldest of them has waited")
UNSENT_FACTS = Gauge("caisson_memory_unsent_events", "Events that JetStream has not acknowledged")
OLDEST_UNSENT_SECONDS = Gauge("caisson_memory_oldest_unsent_seconds", "Age of the oldest of them")

_LEASED_AT_ONCE = 64
_STANDSTILL_S = 120.0

log = structlog.get_logger(__name__)


class Outgoing(Protocol):
    """Work that waits in an outbox."""

    name: str

    async def relay(self) -> Relayed:
        """Do one round."""

    async def backlog(self) -> Backlog:
        """Return how much is left, and tell the metrics."""


class Relay:
    """Does round after round: on news, and by a slow poll."""

    def __init__(
        self,
        outgoing: Outgoing,
        *,
        wake: asyncio.Event,
        poll_s: float,
        progress: Progress,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._outgoing = outgoing
        self._wake = wake
        self._poll_s = poll_s
        self._progress = progress
        self._clock = clock
        self._oldest_s = 0.0
        self._got_on_at = clock()

    async def run(self) -> None:
        """Relay for ever."""
        while True:
            self._wake.clear()
            if not await self.turn():
                await _wait(self._wake, self._poll_s)

    async def turn(self) -> bool:
        """Do a round and look at what is left; return whether another round should follow at once."""
        relayed = Relayed(done=0, more=False)
        try:
            relayed = await self._outgoing.relay()
        except TROUBLE as error:
            log.warning("relay.interrupted", relay=self._outgoing.name, error=repr(error))
        if relayed.done:
            self._got_on_at = self._clock()
        try:
            self._oldest_s = (await self._outgoing.backlog()).oldest_s
            self._progress.tick()
        except TROUBLE as error:
            log.warning("relay.unmeasured", relay=self._outgoing.name, error=repr(error))
        return relayed.more

    async def check(self) -> None:
        """Raise Unavailable while work has waited for two minutes and none was done for as long."""
        idle_s = self._clock() - self._got_on_at
        if min(self._oldest_s, idle_s) > _STANDSTILL_S:
            waiting = f"the oldest waits for {self._oldest_s:.0f} s"
            raise Unavailable(f"{self._outgoing.name}: none got through for {idle_s:.0f} s, {waiting}")


class Relaying(Protocol):
    """What brings the index up with the store."""

    async def relay(self, limit: int) -> int:
        """Do due work, tenants in turn, and return how much was done."""


class OutgoingPoints:
    """Memories for the index."""

    name = "memories for the index"

    def __init__(self, relaying: Relaying, outbox: IndexOutbox) -> None:
        self._relaying = relaying
        self._outbox = outbox

    async def relay(self) -> Relayed:
        """Index what is due."""
        done = await self._relaying.relay(_LEASED_AT_ONCE)
        return Relayed(done=done, more=done > 0)

    async def backlog(self) -> Backlog:
        """Return how far the index is behind."""
        backlog = await self._outbox.backlog()
        INDEX_WAITING.set(backlog.waiting)
        INDEX_FAILING.set(backlog.failing)
        INDEX_OLDEST_SECONDS.set(backlog.oldest_s)
        return backlog


class OutgoingFacts:
    """Events for the bus: dropped once acknowledged."""

    name = "events for the bus"

    def __init__(self, outbox: FactOutbox, bus: Bus) -> None:
        self._outbox = outbox
        self._bus = bus

    async def relay(self) -> Relayed:
        """Publish one batch; another follows a full one that JetStream took."""
        async with self._outbox.batch() as batch:
            taken = await asyncio.gather(*map(self._send, batch.facts))
            sent = [fact for fact, acknowledged in zip(batch.facts, taken, strict=True) if acknowledged]
            if sent:
                await batch.mark_sent(sent)
            return Relayed(done=len(sent), more=batch.is_full and all(taken))

    async def backlog(self) -> Backlog:
        """Return how far the bus is behind."""
        backlog = await self._outbox.backlog()
        UNSENT_FACTS.set(backlog.waiting)
        OLDEST_UNSENT_SECONDS.set(backlog.oldest_s)
        return backlog

    async def _send(self, fact: Envelope) -> bool:
        try:
            await self._bus.publish_event(
                subjects.event(fact.type, fact.ids), fact.model_dump_json().encode(), message_id=fact.id
            )
        except (TimedOut, Unavailable) as error:
            log.warning("relay.unacknowledged", event_id=fact.id, reason=error.detail)
            return False
        return True


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return
