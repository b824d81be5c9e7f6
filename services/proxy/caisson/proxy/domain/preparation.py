"""What is the same for every request of one run to one upstream, written once.

Invariant: the tail of a request's head holds each tenant header and the credential exactly once, and both come from
the context alone.
"""

from dataclasses import dataclass, field
from urllib.parse import quote

from caisson.common.contexts import RunContext
from caisson.proxy.domain.credentials import Vault, find_credential
from caisson.proxy.domain.links import Whose
from caisson.proxy.domain.places import Found, QueryPlace
from caisson.proxy.domain.policies import Policy
from caisson.proxy.domain.redaction import Secret
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import KnownHead
from caisson.proxy.domain.targets import quote_segment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A run at an upstream: its tenant in every form, the header lines to append, the secret to keep back.

    `segment` is None when the tenant cannot be written as a path segment; `known` holds header lines written before.
    """

    policy: Policy
    tenant: str
    header_value: bytes
    pairs: tuple[tuple[QueryPlace, bytes], ...]
    segment: bytes | None
    tail: bytes = field(repr=False)
    whose: Whose = field(repr=False)
    secret: Secret | None
    credential: str | None
    known: dict[KnownHead, tuple[bytes, Found]] = field(default_factory=dict)


def prepare(context: RunContext, policy: Policy, vault: Vault) -> Prepared | Refuse:
    """Prepare the requests of a run to an upstream."""
    tenant = context.tenant_id
    if not tenant.isprintable() or tenant != tenant.strip():
        return not_expressible("a header")
    lines = [b"%b: %b\r\n" % (name, tenant.encode()) for name in policy.places.headers]
    secret = name = None
    if policy.credential is not None:
        found = find_credential(context, policy, policy.credential, vault)
        if isinstance(found, Refuse):
            return found
        secret, name = Secret(found.value), found.name
        lines.append(f"{policy.credential.header}: {policy.credential.prefix}{found.value}\r\n".encode())
        lines.append(b"Accept-Encoding: identity\r\n")
    return Prepared(
        policy=policy,
        tenant=tenant,
        header_value=tenant.encode(),
        pairs=tuple(
            (place, f"{quote(place.key)}={quote(tenant, safe='')}".encode()) for place in policy.places.queries
        ),
        segment=quote_segment(tenant),
        tail=b"".join(lines),
        whose=(tenant, b"".join(lines)),
        secret=secret,
        credential=name,
    )


def not_expressible(where: str) -> Refuse:
    """Refuse a tenant id that a place cannot hold."""
    return Refuse(
        reason=Reason.TENANT_NOT_EXPRESSIBLE,
        detail=f"This run's tenant id cannot be written into {where}; the upstream cannot be used this way.",
    )
