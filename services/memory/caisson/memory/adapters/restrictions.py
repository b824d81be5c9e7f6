"""The conditions under which an index is searched or deleted from, before an engine's own words for them.

Invariant: a restriction names a tenant, so that none is empty: to the engines an empty filter means everything.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from caisson.common.ids import TenantId
from caisson.memory.adapters.point_payload import Field, access
from caisson.memory.domain.indexing import Point
from caisson.memory.domain.principals import HardFilter

_MEMORIES = 200


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the field's values is one of these, whole; no values match nothing."""

    field: Field
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotAfter:
    """The field's time is at or before this one."""

    field: Field
    at: datetime


@dataclass(frozen=True, slots=True)
class After:
    """The field's time is later than this one."""

    field: Field
    at: datetime


@dataclass(frozen=True, slots=True)
class Below:
    """The field's number is below this one."""

    field: Field
    number: int


Condition = AnyOf | NotAfter | After | Below


@dataclass(frozen=True, slots=True)
class Restriction:
    """A tenant and what else must hold, all of it."""

    tenant: TenantId
    further: tuple[Condition, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition, the tenant first."""
        return (AnyOf(Field.TENANT, (self.tenant,)), *self.further)

    @property
    def is_by_access(self) -> bool:
        """Whether it goes by who may see, which names the tenant too."""
        return any(condition.field is Field.ACCESS for condition in self.further)


def visible(filter_: HardFilter) -> Restriction:
    """Express the hard filter."""
    layers = (AnyOf(Field.LAYER, tuple(sorted(filter_.layers))),) if filter_.layers else ()
    tenant = filter_.principal.tenant
    return Restriction(
        tenant,
        (
            AnyOf(Field.ACCESS, tuple(sorted(access(tenant, scope) for scope in filter_.principal.allowed))),
            NotAfter(Field.VALID_FROM, filter_.as_of),
            After(Field.VALID_TO, filter_.as_of),
            After(Field.EXPIRES_AT, filter_.now),
            *layers,
        ),
    )


def chunks_of(tenant: TenantId, memory_ids: Sequence[str]) -> Iterator[Restriction]:
    """Express every chunk of these memories, in restrictions of bounded size; none for no memories."""
    for page in _pages(memory_ids):
        yield Restriction(tenant, (AnyOf(Field.MEMORY, page),))


def held_of(tenant: TenantId | None, memory_ids: Sequence[str] | None) -> list[Restriction | None]:
    """Express what an index holds: of all tenants (None), of one, or of some of its memories."""
    if tenant is None:
        return [None]
    return [Restriction(tenant)] if memory_ids is None else [*chunks_of(tenant, memory_ids)]


def older_chunks(points: Iterable[Point]) -> Iterator[Restriction]:
    """Express the chunks that earlier versions of these points' memories may have left."""
    memories: dict[tuple[TenantId, int], dict[str, None]] = {}
    for point in points:
        if point.version > 1:
            memories.setdefault((point.tenant, point.version), {})[point.memory_id] = None
    for (tenant, version), memory_ids in memories.items():
        for page in _pages(list(memory_ids)):
            yield Restriction(tenant, (AnyOf(Field.MEMORY, page), Below(Field.VERSION, version)))


def _pages(memory_ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield from (tuple(memory_ids[at : at + _MEMORIES]) for at in range(0, len(memory_ids), _MEMORIES))
