"""LISTEN/NOTIFY of the ledger: wakes the relay and whoever waits for a run. Lost news costs a poll, nothing more."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import asyncpg
import structlog

from caisson.common.health import Progress
from caisson.common.ids import RunId
from caisson.common.postgres import DATABASE_TROUBLE

_CHANNEL = "ledger_events"
_CHECK_S = 2.0
_RETRY_S = 0.5
_GATHER_S = 0.05

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Waiter:
    finished_only: bool
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class OutboxNews:
    """Wakes the relay: at once for a doorbell, a little later for other events, so that one pass sends more."""

    def __init__(self) -> None:
        self._any = asyncio.Event()
        self._urgent = asyncio.Event()

    def tell(self, *, urgent: bool) -> None:
        """There are unsent events."""
        self._any.set()
        if urgent:
            self._urgent.set()

    async def wait(self, *, timeout_s: float) -> None:
        """Return when the relay should look: on news since the last call, or after the time."""
        if await _within(self._any, timeout_s):
            await _within(self._urgent, _GATHER_S)
        self._any.clear()
        self._urgent.clear()


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


class Notifications:
    """One listening connection of one gateway. `claim_changes` grows whenever there may be something new to claim."""

    def __init__(self, database_url: str, progress: Progress) -> None:
        self._url = database_url
        self._progress = progress
        self._waiters: dict[str, set[_Waiter]] = defaultdict(set)
        self.outbox = OutboxNews()
        self.claim_changes = 0

    def subscribe(self, run_id: RunId, *, finished_only: bool = False) -> "Subscription":
        """Return a context that collects news of a run from now on."""
        return Subscription(self._waiters, run_id, _Waiter(finished_only=finished_only))

    async def listen(self) -> None:
        """Listen for ever, reconnecting when the database goes away."""
        while True:
            try:
                await self._listen_once()
            except DATABASE_TROUBLE as error:
                log.warning("notifications.lost", error=repr(error))
            self._wake_all()
            await asyncio.sleep(_RETRY_S)

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(
            self._url, timeout=_CHECK_S, server_settings={"application_name": "caisson-listen"}
        )
        try:
            await connection.add_listener(_CHANNEL, self._receive)
            self._wake_all()
            while True:
                await asyncio.wait_for(connection.execute("SELECT 1"), _CHECK_S)
                self._progress.tick()
                await asyncio.sleep(_CHECK_S)
        finally:
            connection.terminate()

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        run_id, _, news = str(payload).partition(" ")
        if news:
            self.claim_changes += 1
        self.outbox.tell(urgent=news == "queued")
        for waiter in self._waiters.get(run_id, ()):
            if news == "finished" or not waiter.finished_only:
                waiter.woken.set()

    def _wake_all(self) -> None:
        self.claim_changes += 1
        self.outbox.tell(urgent=True)
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.woken.set()


class Subscription:
    """News of one run, while its context is entered."""

    def __init__(self, waiters: dict[str, set[_Waiter]], run_id: RunId, waiter: _Waiter) -> None:
        self._waiters = waiters
        self._run_id = run_id
        self._waiter = waiter

    async def __aenter__(self) -> "Subscription":
        self._waiters[self._run_id].add(self._waiter)
        return self

    async def __aexit__(self, *_: object) -> None:
        waiting = self._waiters[self._run_id]
        waiting.discard(self._waiter)
        if not waiting:
            del self._waiters[self._run_id]

    def wake(self) -> None:
        """Let `next` return now."""
        self._waiter.woken.set()

    async def next(self, *, timeout_s: float) -> bool:
        """Wait for news since the last call; return whether there were any within the time."""
        woken = await _within(self._waiter.woken, timeout_s)
        self._waiter.woken.clear()
        return woken
