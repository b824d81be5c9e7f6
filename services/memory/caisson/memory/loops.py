"""Background work: both relays, the sweep, and reconciling. Each goes on when a server blinks."""

import asyncio
from typing import Protocol

import asyncpg
import structlog
from prometheus_client import Counter, Gauge

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import TimedOut, Unavailable
from caisson.common.health import Progress
from caisson.common.ids import TenantId
from caisson.memory.domain.housekeeping import Housekeeping, Inventory, StoredPoints, reconcile
from caisson.memory.domain.relaying import FactOutbox, IndexOutbox

INDEX_WAITING = Gauge("caisson_memory_index_waiting", "Memories whose points may differ from their rows")
INDEX_FAILING = Gauge("caisson_memory_index_failing", "Memories that the index refused again and again")
INDEX_OLDEST_SECONDS = Gauge("caisson_memory_index_oldest_seconds", "How long the oldest of them has waited")
UNSENT_FACTS = Gauge("caisson_memory_unsent_events", "Events that JetStream has not acknowledged")
OLDEST_UNSENT_SECONDS = Gauge("caisson_memory_oldest_unsent_seconds", "Age of the oldest of them")
EXPIRED = Counter("caisson_memory_expired_total", "Memories that the sweep took after their end")
COOLED = Counter("caisson_memory_cooled_total", "Memories that went cold")
DRIFT = Counter("caisson_memory_drift_total", "Differences between store and index that were mended", ["kind"])

TROUBLE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, Unavailable)
_LEASED_AT_ONCE = 64
_AGE_LIMIT_S = 60.0
_RECONCILE_EVERY_S = 3_600.0

log = structlog.get_logger(__name__)


class Relaying(Protocol):
    """What brings the index up with the store."""

    async def relay(self, limit: int) -> int:
        """Do the oldest due work and return how much was taken."""


class Engine(StoredPoints, Protocol):
    """The index as its keeper sees it."""

    async def optimize(self) -> None:
        """Let the engine merge what it holds, and drop what was deleted."""


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


class Sweep:
    """Tidies up: what expired goes, what is long unused goes cold, old records go."""

    def __init__(self, housekeeping: Housekeeping, index: Engine, *, pause_s: float, progress: Progress) -> None:
        self._housekeeping = housekeeping
        self._index = index
        self._pause_s = pause_s
        self._progress = progress

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            try:
                await self.sweep()
                self._progress.tick()
            except TROUBLE as error:
                log.warning("sweep.interrupted", error=repr(error))
            await asyncio.sleep(self._pause_s)

    async def sweep(self) -> None:
        """Do one pass."""
        while expired := await self._housekeeping.drop_expired():
            EXPIRED.inc(expired)
        await self._housekeeping.count_uses()
        COOLED.inc(await self._housekeeping.cool_unused())
        await self._housekeeping.drop_old_records()
        await self._index.optimize()


class Reconciler:
    """Holds index and store against each other at start and every hour, one tenant at a time."""

    def __init__(self, inventory: Inventory, index: StoredPoints, *, wake: asyncio.Event) -> None:
        self._inventory = inventory
        self._index = index
        self._wake = wake

    async def run(self) -> None:
        """Reconcile for ever."""
        while True:
            try:
                await self.reconcile()
            except TROUBLE as error:
                log.warning("reconciler.interrupted", error=repr(error))
            await asyncio.sleep(_RECONCILE_EVERY_S)

    async def reconcile(self) -> None:
        """Compare every tenant of the store or the index once."""
        tenants = set(await self._inventory.tenants())
        async for tenant, _, _ in self._index.stored():
            tenants.add(TenantId(tenant))
        for tenant_id in sorted(tenants):
            drift = await reconcile(tenant_id, self._inventory, self._index)
            for kind, found in (("missing", drift.missing), ("orphaned", drift.orphaned), ("stale", drift.stale)):
                if found:
                    DRIFT.labels(kind=kind).inc(len(found))
                    log.warning("reconciler.mended", tenant=tenant_id, kind=kind, memories=len(found))
            self._wake.set()


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return
