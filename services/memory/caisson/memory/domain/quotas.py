"""What users and tenants may hold. Invariant: a write that adds nothing is never refused for a quota."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from caisson.memory.domain.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is held: memories in force, and the bytes of all of them, history included."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """At most this much of one user, and of one tenant with all its users."""

    user: Holding
    tenant: Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a user and its tenant hold at one moment."""

    user: Holding
    tenant: Holding


@dataclass(frozen=True, slots=True)
class Within:
    """Every quota is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceeded:
    """A quota is broken; the text names whose, the limit and the usage."""

    told: str


def judge(before: Account, after: Account, quotas: Quotas) -> Within | Exceeded:
    """Decide about a write by what was held before it and what is held with it."""
    for whose, held, holds, limit in _compared(before, after, quotas):
        for unit in ("rows", "bytes"):
            was, now, most = getattr(held, unit), getattr(holds, unit), getattr(limit, unit)
            if now > most and now > was:
                name = "memories" if unit == "rows" else "bytes"
                return Exceeded(
                    told=f"the {whose}'s quota is {most} {name}; {was} are used, {now - was} more were asked"
                )
    return Within()


def _compared(before: Account, after: Account, quotas: Quotas) -> Iterator[tuple[str, Holding, Holding, Holding]]:
    yield "user", before.user, after.user, quotas.user
    yield "tenant", before.tenant, after.tenant, quotas.tenant


class Holdings(Protocol):
    """What is held, and what may be."""

    async def held(self, principal: Principal) -> tuple[Account, Quotas]:
        """Return what a user and its tenant hold, and their quotas."""
