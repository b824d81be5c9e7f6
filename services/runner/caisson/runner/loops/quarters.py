"""A run's room: made ahead of its first command, and left whatever happens.

Invariant: `leave` ends only when the room is gone, also when the room was still being made.
"""

import asyncio

import structlog

from caisson.common.errors import CaissonError
from caisson.common.leases import Grant
from caisson.common.outcome import Cancelled, Output
from caisson.runner.domain.boxes import BoxCommand, BoxResult, LiveOutput, Place, Room, Rooms

_CANCEL_GRACE_S = 1.0

log = structlog.get_logger(__name__)


class Quarters:
    """The room of one run."""

    def __init__(self, rooms: Rooms, grant: Grant) -> None:
        self._rooms = rooms
        self._place = Place(uid=grant.uid, run_id=grant.run_id, request_id=grant.request_id, limits=grant.limits)
        self._entering: asyncio.Task[Room] | None = None

    def prepare(self) -> None:
        """Begin to make the room."""
        if self._entering is None:
            self._entering = asyncio.create_task(self._rooms.enter(self._place))

    async def room(self) -> Room:
        """Return the room. One that could not be made is tried again by the next call.

        Raises:
            Unavailable: the host could not make it.
        """
        self.prepare()
        assert self._entering is not None  # noqa: S101 - prepare has set it
        try:
            return await asyncio.shield(self._entering)
        except CaissonError:
            self._entering = None
            raise

    async def leave(self) -> None:
        """Destroy the room."""
        if self._entering is None:
            return
        entering, self._entering = self._entering, None
        try:
            room = await entering
        except CaissonError as error:
            log.warning("room.not_made", reason=error.detail)
            return
        await room.leave()


async def execute(room: Room, command: BoxCommand, live: LiveOutput, *, cancelling: asyncio.Event) -> BoxResult:
    """Run a command and kill it when the run is cancelled. Cancelling the awaiting task kills it too."""
    running = asyncio.create_task(room.execute(command, live))
    cancelled = asyncio.create_task(cancelling.wait())
    try:
        await asyncio.wait((running, cancelled), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            room.cancel()
            await asyncio.wait((running,), timeout=_CANCEL_GRACE_S)
        if not running.done():
            await _kill(running)
            return BoxResult(outcome=Cancelled(), stdout=Output(), stderr=Output(), duration_ms=0, refused=())
        return running.result()
    finally:
        cancelled.cancel()
        await _kill(running)


async def _kill(running: asyncio.Task[BoxResult]) -> None:
    running.cancel()
    await asyncio.wait((running,))
    if not running.cancelled():
        running.exception()
