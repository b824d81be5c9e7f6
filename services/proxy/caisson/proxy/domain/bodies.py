"""What an upstream takes as a body.

Invariant: a body in which the tenant must stand is either rewritten whole or refused; it never passes as it is.
"""

from caisson.proxy.domain.documents import rewrite_document
from caisson.proxy.domain.places import NOTHING, Findings, Location
from caisson.proxy.domain.policies import Policy
from caisson.proxy.domain.preparation import Prepared
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Request


def check_body(request: Request, policy: Policy) -> Refuse | None:
    """Refuse what the head alone says to be too large or not rewritable."""
    if policy.places.documents and request.is_encoded:
        return body_not_rewritable("it is compressed")
    return check_size(request.length or 0, policy)


def check_size(size_bytes: int, policy: Policy) -> Refuse | None:
    """Refuse a body that has grown beyond the limit."""
    limits = policy.limits
    limit_bytes = limits.request_body_bytes
    if policy.places.documents:
        limit_bytes = min(limit_bytes, limits.document_bytes)
    if size_bytes <= limit_bytes:
        return None
    return Refuse(
        reason=Reason.BODY_TOO_LARGE, detail=f"The request body is larger than {limit_bytes} bytes, the limit here."
    )


def rewrite_body(body: bytes, prepared: Prepared, findings: Findings) -> bytes:
    """Write the tenant into a JSON body at each declared place.

    Raises:
        Unrewritable: when it is not a JSON object.
    """
    for place in prepared.policy.places.documents:
        body, found = rewrite_document(body, place, prepared.tenant)
        if found is not NOTHING:
            findings.append((Location.JSON, found))
    return body


def body_not_rewritable(why: str) -> Refuse:
    """Refuse a body in which the tenant cannot be replaced."""
    return Refuse(
        reason=Reason.BODY_NOT_REWRITABLE,
        detail=f"The upstream takes the tenant from the JSON body, and this body cannot be rewritten: {why}.",
    )
