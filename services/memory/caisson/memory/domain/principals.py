"""Who may see what. Invariant: no `HardFilter` exists without a principal and a time, and every read takes one."""

from dataclasses import dataclass
from datetime import datetime

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.layers import Layer

TENANT_SCOPE = "tenant"
USER_SCOPE_PREFIX = "user:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A caller as the gateway vouches for it. `granted` are named scopes beyond the two that it always has."""

    tenant: TenantId
    user: UserId
    granted: frozenset[str]

    @property
    def allowed(self) -> frozenset[str]:
        """Every scope that it may see, compared whole and never as a prefix: tenant, own user, granted."""
        return self.granted | {TENANT_SCOPE, self.own_scope}

    @property
    def own_scope(self) -> str:
        """The scope of its user."""
        return f"{USER_SCOPE_PREFIX}{self.user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HardFilter:
    """The conditions that stand before any similarity, on every path that reads.

    `now` decides expiry, `as_of` decides validity; both are aware. `layers` narrows further, empty means all.
    The SQL and each index engine express exactly this; no part of it can be left out.
    """

    principal: Principal
    now: datetime
    as_of: datetime
    layers: frozenset[Layer] = frozenset()
