"""What is read of memories. Every method takes the hard filter, so none can read past the principal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from caisson.memory.domain.layers import Status
from caisson.memory.domain.memories import Change, Memory
from caisson.memory.domain.principals import HardFilter

EPOCH_SPAN = timedelta(minutes=5)
"""How far ahead an epoch tells what comes: it says nothing of later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A place in a list, newest first: what comes after it is older."""

    created_at: datetime
    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which memories of a list, and how many."""

    limit: int
    before: Cursor | None = None
    status: Status | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A span in which what a principal may see stays as it is, apart from what ends.

    `changes` grows with every write to one of its scopes and with every point of theirs that the index takes up;
    `until` is when the next memory comes into force, or earlier; None where none is to within `EPOCH_SPAN`.
    """

    changes: int
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The memories, by their ids, that the store vouches for, and the epoch in which it does."""

    memories: dict[str, Memory]
    epoch: Epoch


class Reading(Protocol):
    """The read side of the store."""

    async def get(self, id_: str, filter_: HardFilter, *, as_of: datetime | None = None) -> Memory:
        """Return a readable memory by its id or external id, in force at `as_of` where that is given.

        Raises:
            NotFound: when there is none; another's memory is none.
        """

    async def page(self, listing: Listing, filter_: HardFilter) -> list[Memory]:
        """Return visible memories, cold ones too, newest first."""

    async def confirm(self, memory_ids: Sequence[str], filter_: HardFilter) -> Confirmed:
        """Return those of the ids that a recall may tell now; the check of every hit before it leaves."""

    async def expired_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> int:
        """Count those of the ids that are the principal's to see but have expired."""

    async def history(self, id_: str, filter_: HardFilter) -> list[Change]:
        """Return every version of a memory and of the facts before and after it, oldest first; or raise NotFound."""

    async def export(self, owner_scope: str, filter_: HardFilter, *, after: str | None, limit: int) -> list[Memory]:
        """Return readable memories of an owner, superseded and cold too, in the order of their ids."""

    async def injected(self, session_id: str, filter_: HardFilter) -> dict[str, str]:
        """Return by id the texts that recalls of a session returned, as far as the principal still sees them."""
