"""Keys, tenants and credentials, as the API needs them of the ledger."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from caisson.common.ids import TenantId
from caisson.gateway.domain.limits import Tenant
from caisson.gateway.domain.pages import Page, PageRequest
from caisson.gateway.domain.principals import ApiKey, KeyKind, MintedKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A key as it may be shown."""

    key_id: str
    kind: KeyKind
    name: str
    tenant_id: TenantId | None
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """A stored key with the tenant that the request is about, where that exists already."""

    key: ApiKey
    tenant: Tenant | None


class Keys(Protocol):
    """The ledger's API keys."""

    async def recognise(self, key_id: str, *, tenant: str | None) -> Recognised | None:
        """Return the unrevoked key and, in the same round trip, the tenant it is used for."""

    async def create(self, key: MintedKey, *, kind: KeyKind, name: str, tenant: TenantId | None) -> None:
        """Store a new key."""

    async def page(self, request: PageRequest, *, tenant: TenantId | None, prefix: str | None) -> Page[KeyRecord]:
        """Return keys, of one tenant where it is given."""

    async def revoke(self, key_id: str, *, tenant: TenantId | None) -> None:
        """Revoke at once; raise NotFound for a key that is not the tenant's."""


class Tenants(Protocol):
    """The ledger's tenants and their sealed credentials."""

    async def ensure(self, tenant: TenantId) -> Tenant:
        """Return the tenant, made on first use; raise UidRangeExhausted when no uid is left."""

    async def find(self, tenant: TenantId) -> Tenant:
        """Return the tenant or raise NotFound."""

    async def change(self, tenant: Tenant) -> Tenant:
        """Store a tenant's settings."""

    async def put_credential(self, tenant: TenantId, *, upstream: str, sealed: str) -> None:
        """Store a sealed credential; the next request of any live run uses it."""

    async def delete_credential(self, tenant: TenantId, *, upstream: str) -> None:
        """Remove a credential, also from live runs; raise NotFound where there is none."""
