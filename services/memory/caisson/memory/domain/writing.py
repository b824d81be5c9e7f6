"""What is written of memories. One transaction per call; writers of one tenant come one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.drafting import Draft, Wording
from caisson.memory.domain.ends import End
from caisson.memory.domain.jobs import Job
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.principals import HardFilter, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A new memory; `similar_to` says something near it."""

    memory_id: str
    similar_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The same is remembered already."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """A newer fact took the place of older ones; where it kept an external id, of its own older text."""

    memory_id: str
    replaced: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The store keeps it out: a memory of this text was forgotten, or its session has ended."""

    reason: str


Written = Created | Duplicate | Superseded | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a patch changes; None stays as it is."""

    expected_version: int | None = None
    wording: Wording | None = None
    importance: float | None = None
    confidence: float | None = None
    valid_to: End | None = None
    expires_at: End | None = None
    tags: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    wake: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a deletion took and changed, and which of it the principal may be told by id: what others had made of its
    memories goes too. `chunks` counts the points that the index held of it.
    """

    deleted: tuple[str, ...]
    rebuilt: tuple[str, ...]
    seen: frozenset[str]
    chunks: int
    epochs: int
    tombstones: int


class Remembering(Protocol):
    """Adding to the store."""

    async def remember(self, drafts: Sequence[Draft], principal: Principal) -> list[Written]:
        """Store drafts, all or none; raise QuotaExceeded with limit and usage."""


class Correcting(Protocol):
    """Changing what is stored."""

    async def correct(self, id_: str, correction: Correction, filter_: HardFilter) -> Memory:
        """Change a memory that the principal may change.

        Raises:
            NotFound: when it may not see it either.
            Denied: when the memory is another owner's.
            Conflict: when it is at another version, superseded, would repeat another memory, or would be true beside
                the fact that follows it.
            InvalidInput: when an end is not one that it may have.
        """


class Forgetting(Protocol):
    """The deleting side of the store."""

    async def forget(self, id_: str, filter_: HardFilter) -> tuple[str, Forgotten]:
        """Delete a memory and everything made from it, and return the id of the receipt that is kept with that.

        Raises:
            NotFound: when the principal may not see it.
            Denied: when the memory is another owner's.
        """

    async def forget_owned(self, principal: Principal, job: Job, limit: int) -> tuple[Job, Forgotten]:
        """Delete up to `limit` memories of the job's owner, with everything made from them, and note it in the job.

        Raises:
            Conflict: the job was granted to another call meanwhile; nothing is deleted.
        """

    async def owns(self, tenant: TenantId, owner_scope: str) -> bool:
        """Whether anything of an owner is left."""

    async def forget_user(self, tenant: TenantId, user: UserId) -> None:
        """Drop what else names a user whose memories are gone."""

    async def end_session(self, tenant: TenantId, session_id: str) -> Forgotten:
        """Delete up to a page of the session layer of a session, in which nothing is remembered from now on."""
