"""Deleting a session: marked in one statement, worked off a bounded part at a time by whichever gateway comes by.

Invariant: each part may be done twice and stopped anywhere. Runs are cancelled before they are removed; all of them,
and what the bus holds of them, are gone before the session is closed; only then does anybody hear of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from caisson.common.errors import NotFound
from caisson.common.ids import RunId, SessionId, TenantId
from caisson.gateway.domain.sessions import Session

Cancel = Callable[[RunId, TenantId], Awaitable[None]]
"""Cancels a run as its owner would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """A session that is being deleted."""

    session_id: SessionId
    tenant_id: TenantId


class Deletions(Protocol):
    """Deletions as the ledger keeps them."""

    async def begin(self, session_id: SessionId, tenant: TenantId) -> Session | None:
        """Mark a session, so that nothing begins in it; None where it is deleted already. Raises NotFound."""

    async def page(self, after: str) -> list[Doomed]:
        """Return sessions that are being deleted, in the order of their ids."""

    async def to_cancel(self, session_id: SessionId) -> Sequence[RunId]:
        """Return some runs that have not ended and that nobody has cancelled."""

    async def remove_runs(self, session_id: SessionId) -> int:
        """Remove some ended runs with all that was stored of them, once the bus has their events; return how many."""

    async def is_empty(self, session_id: SessionId) -> bool:
        """Whether no run is left."""

    async def close(self, session_id: SessionId) -> bool:
        """Keep nothing of a session without runs but that it was deleted; return whether that is so now."""


class Copies(Protocol):
    """What the bus still holds of a session."""

    async def purge(self, doomed: Doomed) -> None:
        """Drop the events of its runs; raise Unavailable where that is not certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a part of the work came to: whether anything moved, and whether nothing is left."""

    moved: bool
    is_last: bool


class Deleting:
    """Deletes sessions, a bounded part at a time."""

    def __init__(self, deletions: Deletions, copies: Copies, cancel: Cancel) -> None:
        self._deletions = deletions
        self._copies = copies
        self._cancel = cancel
        self.begin = deletions.begin
        self.page = deletions.page

    async def work_off(self, doomed: Doomed) -> Part:
        """Do a bounded part of deleting a session."""
        session_id = doomed.session_id
        running = await self._deletions.to_cancel(session_id)
        for run_id in running:
            with suppress(NotFound):
                await self._cancel(run_id, doomed.tenant_id)
        removed = await self._deletions.remove_runs(session_id)
        if not await self._deletions.is_empty(session_id):
            return Part(moved=bool(running or removed), is_last=False)
        await self._copies.purge(doomed)
        return Part(moved=True, is_last=await self._deletions.close(session_id))
