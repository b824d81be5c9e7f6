"""Security reports to the ledger.

Invariant: an event keeps its id until the ledger has confirmed it, so that it counts once however often it is sent.
"""

import asyncio
from collections import deque

import structlog

from caisson.common.bus import Bus
from caisson.common.errors import CaissonError
from caisson.common.leases import Done, RecordSecurity, SecurityEvent
from caisson.common.subjects import LEDGER_RECORD_SECURITY
from caisson.proxy import metrics

_MAX_EVENTS = 10_000
_BATCH = 100
_GATHER_S = 0.02
_CALL_TIMEOUT_S = 2.0
_MAX_PAUSE_S = 2.0

log = structlog.get_logger(__name__)


class SecurityReports:
    """Events that wait to be reported."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._events: deque[SecurityEvent] = deque()
        self._wake = asyncio.Event()

    def add(self, event: SecurityEvent) -> None:
        """Take an event."""
        if len(self._events) < _MAX_EVENTS:
            self._events.append(event)
            self._wake.set()
        else:
            metrics.DROPPED.labels(kind="security").inc()

    async def run(self) -> None:
        """Report what there is soon after it happened, for ever."""
        pause_s = _GATHER_S
        while True:
            await self._wake.wait()
            await asyncio.sleep(pause_s)
            pause_s = _GATHER_S if await self.flush() else min(pause_s * 2, _MAX_PAUSE_S)

    async def flush(self) -> bool:
        """Report what there is; whether the ledger took all of it."""
        self._wake.clear()
        while self._events:
            batch = [self._events[index] for index in range(min(_BATCH, len(self._events)))]
            try:
                request = RecordSecurity(events=batch)
                await self._bus.call(LEDGER_RECORD_SECURITY, request, Done, timeout_s=_CALL_TIMEOUT_S)
            except CaissonError as error:
                if error.retryable:
                    log.warning("security.unreported", reason=error.detail, waiting=len(self._events))
                    self._wake.set()
                    return False
                log.warning("security.report_refused", code=error.code, reason=error.detail)
                metrics.DROPPED.labels(kind="security").inc(len(batch))
            for _ in batch:
                self._events.popleft()
        return True
