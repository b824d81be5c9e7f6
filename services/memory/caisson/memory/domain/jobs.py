"""Long work in slices that a caller resumes by the job's id."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from caisson.memory.domain.principals import Principal


class JobKind(StrEnum):
    """What kinds of work leave a receipt."""

    DELETE = "delete"
    ERASE_USER = "erase_user"
    DISTIL = "distil"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that one call holds. `receipt` tells what was done so far: ids and counts, never a text."""

    job_id: str
    fence: int
    state: dict[str, Any]
    receipt: dict[str, Any]
    done: bool


class Jobs(Protocol):
    """Where jobs are kept."""

    async def receipt(self, principal: Principal, id_: str) -> tuple[str, dict[str, Any]]:
        """Return id and receipt of a deletion of the principal's own, by that id or by a memory that it took.

        Raises:
            NotFound: when the principal has no such receipt.
        """

    async def complete(self, principal: Principal, job_id: str) -> None:
        """Note that nothing is left of what a single deletion took."""

    async def open(self, kind: JobKind, principal: Principal, state: dict[str, Any]) -> Job:
        """Begin a job and hold it."""

    async def resume(self, kind: JobKind, principal: Principal, job_id: str) -> Job:
        """Hold a job of the principal's own; raise NotFound, or Conflict while another call works on it."""

    async def save(self, job: Job) -> None:
        """Keep what a slice did and let go; raise Conflict where the job was granted to another meanwhile."""
