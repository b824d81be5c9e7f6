"""Calls of operators and backends: tenants, credentials, API keys, security events."""

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any

from caisson.client.calls import segment
from caisson.client.errors import KeyLost
from caisson.client.models import ApiKey, SecurityEvent, Tenant, rfc3339
from caisson.client.pages import paginate, parse
from caisson.client.requests import KeyRequest, TenantSettings, Upstream, build
from caisson.client.transport import Transport


class AdministrationCalls:
    """What the holder of a platform key does."""

    _transport: Transport

    async def get_tenant(self, tenant_id: str) -> Tenant:
        """Return a tenant's settings."""
        return parse(Tenant, await self._transport.acting_for_nobody().get(_tenant(tenant_id)))

    async def put_tenant(self, tenant_id: str, settings: TenantSettings | Mapping[str, Any]) -> Tenant:
        """Set a tenant's limits, ceilings, concurrency and retention."""
        body = settings.body() if isinstance(settings, TenantSettings) else settings
        return parse(Tenant, await self._transport.acting_for_nobody().put(_tenant(tenant_id), body))

    async def put_credential(
        self, tenant_id: str, upstream: str, *, bearer: str | None = None, header: str | None = None
    ) -> None:
        """Store a tenant's credential for an upstream; the next request uses it. It cannot be read back."""
        credential = build(Upstream, {"bearer": bearer, "header": header})
        await self._transport.acting_for_nobody().put(_credential(tenant_id, upstream), credential.body())

    async def delete_credential(self, tenant_id: str, upstream: str) -> None:
        """Remove a tenant's credential for an upstream."""
        await self._transport.acting_for_nobody().delete(_credential(tenant_id, upstream))

    async def create_key(
        self, name: str, *, tenant_id: str | None = None, idempotency_key: str | None = None
    ) -> ApiKey:
        """Make a key bound to `tenant_id`, or a platform key. Only this answer holds the key itself.

        Raises:
            KeyLost: the key was made, but the answer with it was lost; revoke it and make another.
        """
        request = build(KeyRequest, {"name": name, "tenant_id": tenant_id})
        made = parse(ApiKey, await self._transport.post("/v1/keys", request.body(), key=idempotency_key))
        if made.key is None:
            raise KeyLost(f"key {made.id} was made but its answer was lost: revoke it and make another")
        return made

    def list_keys(self, *, prefix: str | None = None, limit: int | None = None) -> AsyncGenerator[ApiKey, None]:
        """Iterate over keys, newest first."""
        return paginate(self._transport, "/v1/keys", ApiKey, params={"prefix": prefix}, limit=limit)

    async def delete_key(self, key_id: str) -> None:
        """Revoke a key at once."""
        await self._transport.delete(f"/v1/keys/{segment(key_id, field='key_id')}")

    def security_events(
        self, *, since: datetime | None = None, limit: int | None = None
    ) -> AsyncGenerator[SecurityEvent, None]:
        """Iterate over what guards, proxy and network blocked, newest first.

        A `since` without a time zone is taken as local time.
        """
        params = {"since": None if since is None else rfc3339(since)}
        return paginate(self._transport, "/v1/security-events", SecurityEvent, params=params, limit=limit)


def _tenant(tenant_id: str) -> str:
    return f"/v1/tenants/{segment(tenant_id, field='tenant_id')}"


def _credential(tenant_id: str, upstream: str) -> str:
    return f"{_tenant(tenant_id)}/credentials/{segment(upstream, field='upstream')}"
