"""Who calls, and for whom. Invariant: nothing but the API key and its two headers decides the tenant."""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum

from caisson.common.errors import InvalidInput, TenantMismatch
from caisson.common.ids import TenantId, UserId, check_external_id

TOKEN_SCHEME = "csn"  # noqa: S105 - the visible prefix of every key
_KEY_ID_BYTES = 3
_SECRET_BYTES = 32


class TenantRequired(InvalidInput):
    """A platform key did not say for which tenant it calls."""

    code = "tenant_required"


class UserRequired(InvalidInput):
    """A platform key did not say for which user it calls."""

    code = "user_required"


class KeyKind(StrEnum):
    """A platform key names its tenant on each request; a tenant key is bound to one."""

    PLATFORM = "platform"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key. The secret itself is known to its holder alone."""

    key_id: str
    kind: KeyKind
    name: str
    tenant: TenantId | None
    secret_hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of one request, after its key was checked against its headers."""

    key: ApiKey
    tenant: TenantId | None
    user: UserId | None

    @property
    def is_platform(self) -> bool:
        """Whether the caller is the product's backend rather than a tenant."""
        return self.key.kind is KeyKind.PLATFORM

    def require_tenant(self) -> TenantId:
        """Return the tenant or raise TenantRequired."""
        if self.tenant is None:
            raise TenantRequired("a platform key must name the tenant it acts for", field="Caisson-Tenant")
        return self.tenant

    def require_user(self) -> UserId:
        """Return the user or raise UserRequired."""
        if self.user is None:
            raise UserRequired("a platform key must name the user it acts for", field="Caisson-User")
        return self.user


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedKey:
    """A new key: the token is shown once and never stored."""

    key_id: str
    token: str
    secret_hash: bytes


def mint() -> MintedKey:
    """Make a key `csn_<id>_<secret>`: milliseconds and 24 random bits name it, 256 random bits prove it.

    Ids sort by the time they were made, as lists of keys do.
    """
    made_ms = time.time_ns() // 1_000_000
    key_id = f"{TOKEN_SCHEME}_{made_ms:012x}{secrets.token_hex(_KEY_ID_BYTES)}"
    secret = secrets.token_hex(_SECRET_BYTES)
    return MintedKey(key_id=key_id, token=f"{key_id}_{secret}", secret_hash=_digest(secret))


def split_token(token: str) -> tuple[str, str] | None:
    """Return (key id, secret), or None where the text is not of a key's form."""
    parts = token.split("_")
    if len(parts) != 3 or parts[0] != TOKEN_SCHEME or not token.isascii():  # noqa: PLR2004 - scheme, id, secret
        return None
    return f"{parts[0]}_{parts[1]}", parts[2]


def proves(secret: str, key: ApiKey) -> bool:
    """Compare in constant time. A plain hash suffices: the secret has 256 random bits."""
    return hmac.compare_digest(_digest(secret), key.secret_hash)


def act_for(key: ApiKey, *, tenant: str | None, user: str | None) -> Principal:
    """Combine a checked key with the headers `Caisson-Tenant` and `Caisson-User`.

    Raises:
        InvalidId: a header is not an id.
        TenantMismatch: a tenant key names another tenant than its own.
    """
    named = TenantId(check_external_id(tenant, field="Caisson-Tenant")) if tenant is not None else None
    acting = UserId(check_external_id(user, field="Caisson-User")) if user is not None else None
    if key.kind is KeyKind.PLATFORM:
        return Principal(key=key, tenant=named, user=acting)
    if named is not None and named != key.tenant:
        raise TenantMismatch("this key belongs to another tenant than Caisson-Tenant names", field="Caisson-Tenant")
    return Principal(key=key, tenant=key.tenant, user=acting or UserId(f"key:{key.key_id}"))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
