"""What a run may use: the caller's wishes within the tenant's ceilings. Invariant: there is no "no limit"."""

from dataclasses import dataclass

from caisson.common.errors import FieldError, InvalidInput
from caisson.common.leases import Limits
from caisson.common.messages import Message

Number = int | float

SYSTEM_CEILINGS = Limits(
    timeout_s=86_400, step_timeout_s=3_600, memory_mib=16_384, pids=4_096, disk_mib=16_384, cpus=64, output_kib=512
)
DEFAULT_CEILINGS = Limits(
    timeout_s=3_600, step_timeout_s=600, memory_mib=2_048, pids=512, disk_mib=1_024, cpus=2, output_kib=512
)
DEFAULT_LIMITS = Limits()


class LimitExceeded(InvalidInput):
    """A wish is above the tenant's ceiling."""

    code = "limit_exceeded"


class PartialLimits(Message):
    """Some of the limits; a missing one takes the default."""

    timeout_s: float | None = None
    step_timeout_s: float | None = None
    memory_mib: int | None = None
    pids: int | None = None
    disk_mib: int | None = None
    cpus: float | None = None
    output_kib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant's settings; `uid` is its own on every runner host."""

    tenant_id: str
    uid: int
    max_concurrency: int
    max_attempts: int
    retention_days: int
    limits: Limits
    ceilings: Limits


def merge(base: Limits, wishes: PartialLimits | None) -> Limits:
    """Return `base` with what `wishes` names."""
    return base.model_copy(update=wishes.model_dump(exclude_none=True)) if wishes else base


def resolve(wishes: PartialLimits | None, *, tenant: Tenant, where: str = "limits") -> Limits:
    """Return the run's limits.

    A default above a ceiling yields to the ceiling: only what the caller asked for is refused.

    Raises:
        InvalidInput: naming each limit that is not above zero.
        LimitExceeded: naming each limit above its ceiling, and the ceiling.
    """
    wanted = merge(tenant.limits, wishes)
    named = wishes.model_dump(exclude_none=True) if wishes else {}
    check_within(named, ceilings=tenant.ceilings, where=where)
    ceilings = tenant.ceilings.model_dump()
    return Limits(**{name: min(value, ceilings[name]) for name, value in wanted.model_dump().items()})


def check_within(named: dict[str, Number], *, ceilings: Limits, where: str) -> None:
    """Hold numbers against zero and against `ceilings`; raises as `resolve` does."""
    low = [name for name, value in named.items() if not value > 0]
    if low:
        told = tuple(FieldError(field=f"{where}.{name}", message="must be above zero") for name in low)
        raise InvalidInput(f"{', '.join(low)}: must be above zero", fields=told)
    top = ceilings.model_dump()
    high = {name: top[name] for name, value in named.items() if value > top[name]}
    if high:
        told = tuple(FieldError(field=f"{where}.{name}", message=f"at most {limit}") for name, limit in high.items())
        raise LimitExceeded("; ".join(f"{name}: at most {limit}" for name, limit in high.items()), fields=told)
