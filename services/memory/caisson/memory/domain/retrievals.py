"""The record of what recalls told, so that a reward reaches just those memories. Each belongs to its principal."""

from dataclasses import dataclass
from typing import Protocol

from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.recalls import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """One recall: which memories it put before its reader, best first."""

    retrieval_id: str
    principal: Principal
    session_id: str | None
    kind: Kind
    injected: tuple[str, ...]


class Retrievals(Protocol):
    """Where the records are kept."""

    async def record(self, retrieval: Retrieval) -> None:
        """Keep a record."""

    async def reward(self, retrieval_id: str, reward: float, filter_: HardFilter) -> list[str]:
        """Let the memories of a retrieval learn what it was worth, and return those that did.

        Memories that the principal can no longer read learn nothing.

        Raises:
            NotFound: no such retrieval of this tenant and user.
            Conflict: it was rewarded before.
        """
