"""What people look up: one memory, lists, histories, everything of a user, usage."""

from datetime import datetime

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import InvalidInput
from caisson.common.memories import ById, Exported, History, ListMemories, MemoryPage, MemoryView, OfUser
from caisson.common.memory_upkeep import Usage, UsageOf
from caisson.memory.domain.layers import Status
from caisson.memory.domain.memories import in_force
from caisson.memory.domain.moments import in_utc
from caisson.memory.domain.quotas import Holdings
from caisson.memory.domain.reading import Cursor, Listing, Reading
from caisson.memory.handlers.callers import Clock, filter_of, owned_scope, principal_of
from caisson.memory.handlers.views import entry_of, view_of

_CURSOR_MARK = "@"


class ReadingHandlers:
    """Answers lookups. Reading changes nothing."""

    def __init__(self, reading: Reading, holdings: Holdings, *, clock: Clock) -> None:
        self._reading = reading
        self._holdings = holdings
        self._clock = clock

    def register(self, bus: Bus) -> None:
        """Serve the lookups on `bus`."""
        bus.serve(subjects.MEMORY_GET, ById, self.get)
        bus.serve(subjects.MEMORY_LIST, ListMemories, self.page)
        bus.serve(subjects.MEMORY_HISTORY, ById, self.history)
        bus.serve(subjects.MEMORY_EXPORT_USER, OfUser, self.export)
        bus.serve(subjects.MEMORY_USAGE, UsageOf, self.usage)

    async def get(self, request: ById) -> MemoryView:
        """Return one memory; another's answers exactly like an unknown one."""
        filter_ = filter_of(request.caller, self._clock(), as_of=request.as_of)
        as_of = None if request.as_of is None else filter_.as_of
        return view_of(await self._reading.get(request.id, filter_, as_of=as_of))

    async def page(self, request: ListMemories) -> MemoryPage:
        """Return a page, newest first."""
        layers = [] if request.layer is None else [request.layer]
        filter_ = filter_of(request.caller, self._clock(), as_of=request.as_of, layers=layers)
        before = None
        if request.before is not None:
            before = _cursor_of(request.before)
            if before is None:
                found = await self._reading.get(request.before, filter_)
                before = Cursor(created_at=found.created_at, memory_id=found.memory_id)
        status = None if request.status is None else Status(request.status)
        listing = Listing(limit=request.limit + 1, before=before, status=status, subject=request.subject)
        found_page = await self._reading.page(listing, filter_)
        items = found_page[: request.limit]
        last = items[-1] if len(found_page) > request.limit else None
        cursor = None if last is None else f"{last.memory_id}{_CURSOR_MARK}{last.created_at.isoformat()}"
        return MemoryPage(items=[view_of(memory) for memory in items], next_before=cursor)

    async def history(self, request: ById) -> History:
        """Return every version of a memory and of its chain of facts; with `as_of`, what was believed then."""
        filter_ = filter_of(request.caller, self._clock(), as_of=request.as_of)
        changes = await self._reading.history(request.id, filter_)
        if request.as_of is not None:
            changes = in_force(changes, filter_.as_of)
        return History(entries=[entry_of(change) for change in changes])

    async def export(self, request: OfUser) -> Exported:
        """Return a page of everything remembered about a user, superseded and cold too."""
        filter_ = filter_of(request.caller, self._clock())
        owner = owned_scope(request.user_id, filter_.principal)
        found = await self._reading.export(owner, filter_, after=request.resume, limit=request.limit + 1)
        items = found[: request.limit]
        resume = items[-1].memory_id if len(found) > request.limit else None
        return Exported(items=[view_of(memory) for memory in items], resume=resume)

    async def usage(self, request: UsageOf) -> Usage:
        """Return what the caller and its tenant hold, and may."""
        account, quotas = await self._holdings.held(principal_of(request.caller))
        return Usage(
            user_rows=account.user.rows,
            user_rows_limit=quotas.user.rows,
            user_bytes=account.user.bytes,
            user_bytes_limit=quotas.user.bytes,
            tenant_rows=account.tenant.rows,
            tenant_rows_limit=quotas.tenant.rows,
            tenant_bytes=account.tenant.bytes,
            tenant_bytes_limit=quotas.tenant.bytes,
        )


def _cursor_of(given: str) -> Cursor | None:
    """Read a cursor of ours; a bare id is none."""
    memory_id, mark, at = given.rpartition(_CURSOR_MARK)
    if not mark:
        return None
    try:
        created_at = datetime.fromisoformat(at)
    except ValueError:
        return None
    if created_at.tzinfo is None:
        raise InvalidInput("not a cursor of this list", field="cursor")
    return Cursor(created_at=in_utc(created_at, "cursor"), memory_id=memory_id)
