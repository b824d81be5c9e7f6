"""Who calls: the key and the two headers become a `Caller`, once per request."""

from dataclasses import dataclass

from starlette.requests import Request

from caisson.common.errors import Denied, InvalidInput, Unauthenticated
from caisson.common.ids import Ids, TenantId
from caisson.common.telemetry import bind
from caisson.gateway.domain.limits import Tenant
from caisson.gateway.domain.principals import Principal, act_for, proves, split_token
from caisson.gateway.domain.tenancy import Keys, Tenants


class PlatformOnly(Denied):
    """Only the product's backend may do this."""

    code = "platform_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A recognised caller; `known_tenant` is the acting tenant where it exists already."""

    principal: Principal
    known_tenant: Tenant | None

    @property
    def tenant(self) -> TenantId:
        """The acting tenant; raises TenantRequired where a platform key names none."""
        return self.principal.require_tenant()

    def require_platform(self) -> None:
        """Raise PlatformOnly for a tenant key."""
        if not self.principal.is_platform:
            raise PlatformOnly("this needs a platform key")


class Callers:
    """Recognises callers; every request asks the ledger, so that a revoked key is refused at once."""

    def __init__(self, keys: Keys, tenants: Tenants) -> None:
        self._keys = keys
        self._tenants = tenants

    async def recognise(self, request: Request) -> Caller:
        """Return the caller.

        Raises:
            Unauthenticated: no key, or not a valid one; which of the two is not told.
            TenantMismatch: a tenant key names another tenant.
        """
        refusal = Unauthenticated("a valid API key is needed: Authorization: Bearer <key>")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        split = split_token(token.strip())
        if scheme.lower() != "bearer" or split is None:
            raise refusal
        key_id, secret = split
        tenant = header(request, b"caisson-tenant", "Caisson-Tenant")
        found = await self._keys.recognise(key_id, tenant=tenant)
        if found is None or not proves(secret, found.key):
            raise refusal
        principal = act_for(found.key, tenant=tenant, user=header(request, b"caisson-user", "Caisson-User"))
        bind(Ids(tenant=principal.tenant, user=principal.user))
        return Caller(principal=principal, known_tenant=found.tenant)

    async def tenant_of(self, caller: Caller) -> Tenant:
        """Return the acting tenant, made on first use."""
        tenant = caller.tenant
        return caller.known_tenant or await self._tenants.ensure(tenant)


def header(request: Request, name: bytes, shown: str) -> str | None:
    """Return the value of a header that may be given once, in any script; raises InvalidInput naming it."""
    values = [value for found, value in request.scope["headers"] if found == name]
    if len(values) > 1:
        raise InvalidInput("given more than once", field=shown)
    if not values:
        return None
    try:
        text = values[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("is not UTF-8", field=shown) from error
    if "\x00" in text:
        raise InvalidInput("must not contain NUL characters", field=shown)
    return str(text)
