"""What keeps the store tidy, in one replica at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from caisson.memory.domain.leasing import Lease

_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """A place in the order of last use, and by default before the first."""

    used_at: datetime = _FIRST
    tenant: str = ""
    memory_id: str = ""


class Housekeeping(Protocol):
    """Tidying a page at a time; every method raises LeaseLost where another replica has the lease."""

    async def drop_expired(self, lease: Lease) -> int:
        """Delete some expired memories; return how many."""

    async def count_uses(self, lease: Lease) -> int:
        """Note the time of use of what recalls of some tenants returned; return of how many."""

    async def cool_unused(self, after: Unused, lease: Lease) -> tuple[int, Unused]:
        """Let some long unused memories go cold; return how many, and where to go on."""

    async def drop_old_records(self, lease: Lease) -> None:
        """Delete old recalls, receipts, unfinished jobs, and names of ended sessions."""
