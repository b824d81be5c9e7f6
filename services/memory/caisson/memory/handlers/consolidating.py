"""Consolidating a caller's episodes: a plan that can be shown first, then one transaction per group."""

from time import monotonic

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.memory_upkeep import Consolidate, ConsolidationPlan
from caisson.memory.domain.consolidating import Consolidator
from caisson.memory.domain.consolidation import Group
from caisson.memory.handlers.callers import Clock, filter_of

_APPLY_WITHIN_S = 10.0


class ConsolidatingHandlers:
    """Makes one memory of several episodes for whoever asks."""

    def __init__(self, consolidator: Consolidator, *, clock: Clock) -> None:
        self._consolidator = consolidator
        self._clock = clock

    def register(self, bus: Bus) -> None:
        """Serve consolidation on `bus`."""
        bus.serve(subjects.MEMORY_CONSOLIDATE, Consolidate, self.consolidate)

    async def consolidate(self, request: Consolidate) -> ConsolidationPlan:
        """Plan, and unless `dry_run`, apply each group for itself; repeating goes on where it stopped."""
        filter_ = filter_of(request.caller, self._clock())
        plan = self._consolidator.plan_due if request.due else self._consolidator.plan
        groups = await plan(filter_)
        created = []
        deadline = monotonic() + _APPLY_WITHIN_S
        for group in () if request.dry_run else groups:
            if monotonic() > deadline:
                break
            memory_id = await self._consolidator.apply(group, filter_.principal)
            if memory_id is not None:
                created.append(memory_id)
        return ConsolidationPlan(
            groups=[_told(group) for group in groups], created=created, applied=not request.dry_run
        )


def _told(group: Group) -> dict[str, object]:
    return {
        "sources": list(group.ids),
        "scopes": list(group.scopes),
        "subject": group.subject,
        "attribute": group.attribute,
        "text": group.text,
    }
