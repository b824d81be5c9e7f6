"""Which credential a request carries.

Invariant: a credential is injected only where its seal says: its own tenant, its own upstream, its own kind. One that
says otherwise, or cannot be opened, refuses the request; it never falls through to the next source.
"""

from dataclasses import dataclass, field
from typing import Protocol

from caisson.common.contexts import Credential, RunContext
from caisson.common.errors import InvalidInput
from caisson.proxy.domain.policies import CredentialRule, Fixed, Policy, Source
from caisson.proxy.domain.refusals import Reason, Refuse


class Vault(Protocol):
    """Opens what was sealed to this proxy."""

    def open(self, sealed: str) -> Credential:
        """Return the credential in clear; raise InvalidInput when it was not sealed to this proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A credential in clear, and the name that audits may tell."""

    name: str
    value: str = field(repr=False)


def find_credential(context: RunContext, policy: Policy, rule: CredentialRule, vault: Vault) -> Injected | Refuse:
    """Return the first credential that exists for the run at the upstream."""
    for source in rule.sources:
        match source:
            case Fixed():
                return Injected(name=source.origin, value=source.value)
            case Source():
                sealed = _sealed(context, policy.name, source)
                if sealed is not None:
                    return _open(sealed, context, policy, rule, source, vault)
    return Refuse(
        reason=Reason.CREDENTIAL_MISSING,
        detail=f"No credential is stored for the upstream {policy.name!r}; it cannot be used in this run.",
    )


def is_header_value(value: str) -> bool:
    """Whether a credential can stand in a header: printable ASCII, without a space at either end."""
    return bool(value) and value.isascii() and value.isprintable() and value == value.strip()


def _sealed(context: RunContext, upstream: str, source: Source) -> str | None:
    stored = context.credentials.get(upstream)
    if stored is None:
        return None
    return stored.run if source is Source.RUN else stored.tenant


def _open(
    sealed: str, context: RunContext, policy: Policy, rule: CredentialRule, source: Source, vault: Vault
) -> Injected | Refuse:
    try:
        credential = vault.open(sealed)
    except InvalidInput:
        return _refuse(policy, "it was not sealed to this proxy")
    if (credential.tenant_id, credential.upstream) != (context.tenant_id, policy.name):
        return _refuse(policy, "it was sealed for another tenant or another upstream")
    if credential.kind != rule.kind:
        return _refuse(policy, f"the upstream takes a {rule.kind}, and it is a {credential.kind}")
    if not is_header_value(credential.value):
        return _refuse(policy, "it cannot be written into a header")
    return Injected(name=source.value, value=credential.value)


def _refuse(policy: Policy, why: str) -> Refuse:
    return Refuse(
        reason=Reason.CREDENTIAL_REFUSED,
        detail=f"The credential stored for the upstream {policy.name!r} is not used: {why}.",
    )
