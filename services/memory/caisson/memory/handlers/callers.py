"""From the gateway's caller to a principal, and what it may ask for. Invariant: nothing else says who asks."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from caisson.common.errors import Denied
from caisson.common.ids import TenantId, UserId, check_external_id
from caisson.common.memories import Caller
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.moments import in_utc
from caisson.memory.domain.principals import USER_SCOPE_PREFIX, HardFilter, Principal

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time; the service's one clock."""
    return datetime.now(UTC)


def principal_of(caller: Caller) -> Principal:
    """Return the principal that the gateway vouches for.

    Raises:
        InvalidInput: when an id or a scope is empty, too long or not printable.
    """
    for scope in caller.scopes:
        check_external_id(scope, field="caller.scopes")
    return Principal(
        tenant=TenantId(check_external_id(caller.tenant_id, field="caller.tenant_id")),
        user=UserId(check_external_id(caller.user_id, field="caller.user_id")),
        granted=frozenset(caller.scopes),
    )


def filter_of(
    caller: Caller, now: datetime, *, as_of: datetime | None = None, layers: Iterable[str] = ()
) -> HardFilter:
    """Return what the caller may see at `now`, in force at `as_of` or now."""
    in_force = now if as_of is None else _whole_millisecond(in_utc(as_of, "as_of"))
    return HardFilter(
        principal=principal_of(caller), now=now, as_of=in_force, layers=frozenset(Layer(layer) for layer in layers)
    )


def owned_scope(user_id: str, principal: Principal) -> str:
    """Return the scope of a user whom the principal may act for: itself, or one it was granted.

    Raises:
        Denied: when it is another.
    """
    scope = USER_SCOPE_PREFIX + check_external_id(user_id, field="user_id")
    if scope not in principal.allowed:
        raise Denied(f"the caller may not act for user {user_id!r}: it is neither that user nor granted {scope!r}")
    return scope


def _whole_millisecond(at: datetime) -> datetime:
    """Times are kept finer than they are told: one that is told, and asked about, means all of its millisecond."""
    return at if at.microsecond % 1_000 else at + timedelta(microseconds=999)
