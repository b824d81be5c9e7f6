"""Watching whether this host can carry out commands. Invariant: until every check has passed, it cannot."""

import asyncio
from collections.abc import Callable

import structlog

from caisson.common.errors import CaissonError, Unavailable
from caisson.runner.domain.boxes import Rooms
from caisson.runner.domain.guards.decision import Guards

_INTERVAL_S = 15.0
_INTERVAL_FAILING_S = 2.0

log = structlog.get_logger(__name__)


class HostWatch:
    """The loop, and what it last found."""

    def __init__(self, rooms: Rooms, guards: Guards, *, on_able: Callable[[], None]) -> None:
        self._rooms = rooms
        self._guards = guards
        self._on_able = on_able
        self._reason: str | None = "the host has not been checked yet"

    @property
    def able(self) -> bool:
        """Whether rooms can be made and commands read."""
        return self._reason is None

    async def check(self) -> None:
        """Raise Unavailable, naming the mechanism that is missing."""
        if self._reason is not None:
            raise Unavailable(self._reason)

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_INTERVAL_S if self.able else _INTERVAL_FAILING_S)

    async def look(self) -> None:
        """Check the host now."""
        before = self._reason
        try:
            await self._rooms.check()
            await self._guards.check()
        except CaissonError as error:
            self._reason = error.detail
        else:
            self._reason = None
        if self._reason != before:
            log.info("host.checked", able=self.able, reason=self._reason)
            if self.able:
                self._on_able()
