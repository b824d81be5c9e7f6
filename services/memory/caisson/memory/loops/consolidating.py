"""The pass of consolidation: owners with many episodes that nobody uses any more, one group at a time."""

from collections.abc import AsyncGenerator, Callable
from datetime import datetime

from prometheus_client import Counter

from caisson.common.ids import TenantId
from caisson.memory.domain.consolidating import BEGINNING, Consolidator, Mark, Place, Quiet
from caisson.memory.domain.leasing import Lease, State

CONSOLIDATED = Counter("caisson_memory_consolidated_total", "Groups of episodes that became one memory by themselves")
SOURCES = Counter("caisson_memory_consolidated_sources_total", "Episodes that went cold with that")
_PLACES_AT_ONCE = 50
_PLACES_PER_PASS = 1_000


class ConsolidatePass:
    """Looks at so many places a pass; the next pass goes on from there, and at the end begins again.

    Every episode of a place has its turn: it is looked at page by page, however little becomes of the first ones.
    """

    def __init__(self, consolidator: Consolidator, *, clock: Callable[[], datetime]) -> None:
        self._consolidator = consolidator
        self._clock = clock

    async def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        """Do one pass: a group is a step. What is done is done, so that repeating a page changes nothing."""
        after, begun = _place(lease.state), lease.state.get("begun")
        quiet = Quiet(now=self._clock())
        for _ in range(0, _PLACES_PER_PASS, _PLACES_AT_ONCE):
            places = await self._consolidator.due_places(quiet, after, limit=_PLACES_AT_ONCE)
            for place in places:
                async for mark in self._pages(place, quiet, _mark(place, begun), lease):
                    yield _state(after) | {"begun": _begun(place, mark)}
                after = place
                yield _state(after)
            if len(places) < _PLACES_AT_ONCE:
                yield {}
                return

    async def _pages(self, place: Place, quiet: Quiet, begun: Mark, lease: Lease) -> AsyncGenerator[Mark, None]:
        """Do what there is to do in a place; yield before each group, and between pages, where to go on."""
        mark: Mark | None = begun
        while mark is not None:
            page = await self._consolidator.plan_page(place, quiet, mark)
            for group in page.groups:
                yield mark
                if await self._consolidator.apply_for_owner(group, lease) is not None:
                    CONSOLIDATED.inc()
                    SOURCES.inc(len(group.episodes))
            mark = page.following
            if mark is not None:
                yield mark


def _state(place: Place | None) -> State:
    if place is None:
        return {}
    return {"tenant": place.tenant, "owner_scope": place.owner_scope, "scope_key": place.scope_key.hex()}


def _place(state: State) -> Place | None:
    if "tenant" not in state:
        return None
    return Place(
        tenant=TenantId(state["tenant"]),
        owner_scope=state["owner_scope"],
        scope_key=bytes.fromhex(state["scope_key"]),
        scopes=(),
    )


def _begun(place: Place, mark: Mark) -> State:
    return _state(place) | {"created_at": mark.created_at.isoformat(), "memory_id": mark.memory_id}


def _mark(place: Place, begun: State | None) -> Mark:
    """Return where to go on in a place: after the episode that was saved of it, or at its beginning."""
    if begun is None or begun | _state(place) != begun:
        return BEGINNING
    return Mark(created_at=datetime.fromisoformat(begun["created_at"]), memory_id=begun["memory_id"])
