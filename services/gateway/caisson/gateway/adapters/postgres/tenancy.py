"""Keys, tenants and credentials in the ledger."""

from typing import Any

import asyncpg

from caisson.common.errors import NotFound, UidRangeExhausted
from caisson.common.ids import TenantId
from caisson.common.postgres import Pool, acquire, fetch_all, transaction
from caisson.gateway.adapters.postgres.rows import tenant_of
from caisson.gateway.domain.limits import Tenant
from caisson.gateway.domain.pages import Page, PageRequest, paginate
from caisson.gateway.domain.principals import ApiKey, KeyKind, MintedKey
from caisson.gateway.domain.tenancy import KeyRecord, Recognised


class PostgresKeys:
    """The domain's `Keys`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def recognise(self, key_id: str, *, tenant: str | None) -> Recognised | None:
        """Return the unrevoked key and, in the same round trip, the tenant it is used for."""
        async with acquire(self._pool) as connection:
            row = await self._sql.authenticate(connection, key_id=key_id, tenant=tenant)
        if row is None:
            return None
        key = ApiKey(
            key_id=row["key_id"],
            kind=KeyKind(row["kind"]),
            name=row["name"],
            tenant=TenantId(row["bound_tenant"]) if row["bound_tenant"] else None,
            secret_hash=row["secret_hash"],
        )
        return Recognised(key=key, tenant=tenant_of(row) if row["tenant_id"] else None)

    async def create(self, key: MintedKey, *, kind: KeyKind, name: str, tenant: TenantId | None) -> None:
        """Store a new key."""
        async with acquire(self._pool) as connection:
            await self._sql.create_key(
                connection, key_id=key.key_id, kind=kind, name=name, tenant=tenant, secret_hash=key.secret_hash
            )

    async def page(self, request: PageRequest, *, tenant: TenantId | None, prefix: str | None) -> Page[KeyRecord]:
        """Return keys, of one tenant where it is given."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.list_keys(
                    connection, tenant=tenant, prefix=prefix, before=request.before, limit=request.limit + 1
                )
            )
        records = [KeyRecord(**{**row, "kind": KeyKind(row["kind"])}) for row in rows]
        return paginate(records, [record.key_id for record in records], request)

    async def revoke(self, key_id: str, *, tenant: TenantId | None) -> None:
        """Revoke at once; raise NotFound for a key that is not the tenant's."""
        async with acquire(self._pool) as connection:
            if await self._sql.revoke_key(connection, key_id=key_id, tenant=tenant) is None:
                raise NotFound("no such key")


class PostgresTenants:
    """The domain's `Tenants`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def ensure(self, tenant: TenantId) -> Tenant:
        """Return the tenant, made on first use.

        Raises:
            UidRangeExhausted: when no uid is left; a uid is never shared.
        """
        async with transaction(self._pool) as connection:
            await self._sql.lock_uids(connection)
            try:
                await self._sql.create_tenant(connection, tenant=tenant)
            except asyncpg.CheckViolationError as error:
                raise UidRangeExhausted("every tenant uid is in use; this tenant cannot be made") from error
            return tenant_of(await self._sql.get_tenant(connection, tenant=tenant))

    async def find(self, tenant: TenantId) -> Tenant:
        """Return the tenant or raise NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.get_tenant(connection, tenant=tenant)
        if row is None:
            raise NotFound("no such tenant")
        return tenant_of(row)

    async def change(self, tenant: Tenant) -> Tenant:
        """Store a tenant's settings."""
        async with acquire(self._pool) as connection:
            row = await self._sql.change_tenant(
                connection,
                tenant=tenant.tenant_id,
                max_concurrency=tenant.max_concurrency,
                max_attempts=tenant.max_attempts,
                retention_days=tenant.retention_days,
                limits=tenant.limits.model_dump(),
                ceilings=tenant.ceilings.model_dump(),
            )
        return tenant_of(row)

    async def put_credential(self, tenant: TenantId, *, upstream: str, sealed: str) -> None:
        """Store a sealed credential."""
        async with acquire(self._pool) as connection:
            await self._sql.put_credential(connection, tenant=tenant, upstream=upstream, sealed=sealed)

    async def delete_credential(self, tenant: TenantId, *, upstream: str) -> None:
        """Remove a credential; raise NotFound where there is none."""
        async with acquire(self._pool) as connection:
            if await self._sql.delete_credential(connection, tenant=tenant, upstream=upstream) is None:
                raise NotFound("no such credential")
