"""`/v1/tenants`, their credentials, and `/v1/keys`."""

from dataclasses import replace
from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.contexts import Credential
from caisson.common.errors import InvalidInput, NotFound, TenantMismatch
from caisson.common.ids import TenantId, check_external_id
from caisson.common.leases import Limits
from caisson.common.messages import Message
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Caller, Callers
from caisson.gateway.api.models import Answer
from caisson.gateway.api.submissions import Seal
from caisson.gateway.domain.leasing import Contexts, Leases
from caisson.gateway.domain.limits import SYSTEM_CEILINGS, PartialLimits, Tenant, check_within, merge
from caisson.gateway.domain.plans import CredentialRequest, check_credential, check_upstream
from caisson.gateway.domain.tenancy import Tenants

MAX_CONCURRENCY = 10_000
MAX_ATTEMPTS = 100
MAX_RETENTION_DAYS = 3_650


class TenantRequest(Message):
    """The body of PUT /v1/tenants/{id}: what is left out stays as it is."""

    max_concurrency: int | None = None
    max_attempts: int | None = None
    retention_days: int | None = None
    limits: PartialLimits | None = None
    ceilings: PartialLimits | None = None


class TenantAnswer(Answer):
    """A tenant's settings. `limits` are what a run gets that asks for nothing; `ceilings` what it may ask for."""

    id: str
    uid: int
    max_concurrency: int
    max_attempts: int
    retention_days: int
    limits: Limits
    ceilings: Limits


class CredentialAnswer(Answer):
    """That a credential is stored; its value never comes back."""

    tenant_id: str
    upstream: str
    kind: Literal["bearer", "header"]


def routes(callers: Callers, tenants: Tenants, leases: Leases, contexts: Contexts, seal: Seal) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["tenants"])

    async def refresh_contexts(tenant: TenantId) -> None:
        for context in await leases.contexts_of(tenant):
            await contexts.put(context)

    @router.put("/v1/tenants/{tenant_id:path}/credentials/{upstream}", response_model=CredentialAnswer)
    async def put_credential(request: Request, tenant_id: str, upstream: str, body: CredentialRequest) -> Response:
        """Seal and store a tenant's credential; the next request of any of its runs uses it."""
        tenant = _acting_on(request, await callers.recognise(request), tenant_id, segments=5)
        kind, value = check_credential(body, field="credential")
        check_upstream(upstream, field="upstream")
        await tenants.ensure(tenant)
        sealed = seal(Credential(tenant_id=tenant, upstream=upstream, kind=kind, value=value))
        await tenants.put_credential(tenant, upstream=upstream, sealed=sealed)
        await refresh_contexts(tenant)
        return answer(CredentialAnswer(tenant_id=tenant, upstream=upstream, kind=kind))

    @router.delete("/v1/tenants/{tenant_id:path}/credentials/{upstream}", status_code=204)
    async def delete_credential(request: Request, tenant_id: str, upstream: str) -> Response:
        """Remove a tenant's credential, also from its live runs."""
        tenant = _acting_on(request, await callers.recognise(request), tenant_id, segments=5)
        await tenants.delete_credential(tenant, upstream=check_upstream(upstream, field="upstream"))
        await refresh_contexts(tenant)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @router.put("/v1/tenants/{tenant_id:path}", response_model=TenantAnswer)
    async def put_tenant(request: Request, tenant_id: str, body: TenantRequest) -> Response:
        """Set a tenant's limits, ceilings, concurrency and retention; makes the tenant if it is new."""
        caller = await callers.recognise(request)
        caller.require_platform()
        tenant = await tenants.ensure(_acting_on(request, caller, tenant_id, segments=3))
        return answer(_tenant_answer(await tenants.change(_changed(tenant, body))))

    @router.get("/v1/tenants/{tenant_id:path}", response_model=TenantAnswer)
    async def get_tenant(request: Request, tenant_id: str) -> Response:
        """Return a tenant's settings."""
        caller = await callers.recognise(request)
        caller.require_platform()
        return answer(_tenant_answer(await tenants.find(_acting_on(request, caller, tenant_id, segments=3))))

    return router


def _acting_on(request: Request, caller: Caller, tenant_id: str, *, segments: int) -> TenantId:
    """Return the tenant of the path, if the caller may act on it: a platform key on any, a tenant key on its own."""
    if request.scope["raw_path"].strip(b"/").count(b"/") != segments - 1:
        raise NotFound("no such path")  # a slash of an id is written %2F
    tenant = TenantId(check_external_id(tenant_id, field="tenant_id"))
    bound = caller.principal.key.tenant
    if bound is not None and bound != tenant:
        raise TenantMismatch("this key belongs to another tenant than the path names", field="tenant_id")
    return tenant


def _changed(tenant: Tenant, body: TenantRequest) -> Tenant:
    bounds = (
        ("max_concurrency", body.max_concurrency, MAX_CONCURRENCY),
        ("max_attempts", body.max_attempts, MAX_ATTEMPTS),
        ("retention_days", body.retention_days, MAX_RETENTION_DAYS),
    )
    for field, value, top in bounds:
        if value is not None and not 1 <= value <= top:
            raise InvalidInput(f"1 to {top}", field=field)
    ceilings = merge(tenant.ceilings, body.ceilings)
    if body.ceilings:
        check_within(body.ceilings.model_dump(exclude_none=True), ceilings=SYSTEM_CEILINGS, where="ceilings")
    if body.limits:
        check_within(body.limits.model_dump(exclude_none=True), ceilings=ceilings, where="limits")
    return replace(
        tenant,
        max_concurrency=body.max_concurrency or tenant.max_concurrency,
        max_attempts=body.max_attempts or tenant.max_attempts,
        retention_days=body.retention_days or tenant.retention_days,
        limits=merge(tenant.limits, body.limits),
        ceilings=ceilings,
    )


def _tenant_answer(tenant: Tenant) -> TenantAnswer:
    return TenantAnswer(
        id=tenant.tenant_id,
        uid=tenant.uid,
        max_concurrency=tenant.max_concurrency,
        max_attempts=tenant.max_attempts,
        retention_days=tenant.retention_days,
        limits=tenant.limits,
        ceilings=tenant.ceilings,
    )
