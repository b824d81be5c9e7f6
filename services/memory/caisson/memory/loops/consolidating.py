"""The pass of consolidation: owners with many episodes that nobody uses any more, one group at a time."""

from collections.abc import AsyncGenerator, Callable
from datetime import datetime

from prometheus_client import Counter

from caisson.common.ids import TenantId
from caisson.memory.domain.consolidating import Consolidator, Place, Quiet
from caisson.memory.domain.leasing import Lease, State

CONSOLIDATED = Counter("caisson_memory_consolidated_total", "Groups of episodes that became one memory by themselves")
SOURCES = Counter("caisson_memory_consolidated_sources_total", "Episodes that went cold with that")
_PLACES_AT_ONCE = 50
_PLACES_PER_PASS = 1_000


class ConsolidatePass:
    """Looks at so many places a pass; the next pass goes on from there, and at the end begins again."""

    def __init__(self, consolidator: Consolidator, *, clock: Callable[[], datetime]) -> None:
        self._consolidator = consolidator
        self._clock = clock

    async def steps(self, lease: Lease) -> AsyncGenerator[State, None]:
        """Do one pass: a group is a step. What is done is done, so that repeating a place changes nothing."""
        after, quiet = _place(lease.state), Quiet(now=self._clock())
        for _ in range(0, _PLACES_PER_PASS, _PLACES_AT_ONCE):
            places = await self._consolidator.due_places(quiet, after, limit=_PLACES_AT_ONCE)
            for place in places:
                for group in await self._consolidator.plan_place(place, quiet):
                    yield _state(after)
                    if await self._consolidator.apply_for_owner(group, lease) is not None:
                        CONSOLIDATED.inc()
                        SOURCES.inc(len(group.episodes))
                after = place
                yield _state(after)
            if len(places) < _PLACES_AT_ONCE:
                yield {}
                return


def _state(place: Place | None) -> State:
    if place is None:
        return {}
    return {"tenant": place.tenant, "owner_scope": place.owner_scope, "scope_key": place.scope_key.hex()}


def _place(state: State) -> Place | None:
    if not state:
        return None
    return Place(
        tenant=TenantId(state["tenant"]),
        owner_scope=state["owner_scope"],
        scope_key=bytes.fromhex(state["scope_key"]),
        scopes=(),
    )
