"""An upstream as declared, compiled for the path of a request.

Invariant: a policy is complete when it is built; nothing on the path of a request reads the declaration again.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from caisson.proxy.domain.headers import Fates
from caisson.proxy.domain.places import Places
from caisson.proxy.domain.templates import Template


class Source(StrEnum):
    """Whose credential it is."""

    RUN = "run"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A credential of the deployment itself, read when the declaration was loaded. `origin` names it in audits."""

    origin: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRule:
    """How a request to the upstream is authenticated: `kind` as stored, on which header, from where first."""

    kind: str
    header: str
    prefix: str
    sources: tuple[Source | Fixed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request to the upstream may take."""

    connect_s: float
    first_byte_s: float
    idle_s: float
    request_body_bytes: int
    document_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """Where the connections of one upstream go; they are shared with no other."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    connect_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One allowance: methods on a path."""

    methods: frozenset[bytes]
    template: Template


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """One upstream. `authority` is its Host; `base_path` stands before every forwarded path."""

    name: str
    origin: Origin
    authority: bytes
    base_path: bytes
    rules: tuple[Rule, ...]
    places: Places
    datasets: tuple[Template, ...]
    credential: CredentialRule | None
    trusted: bool
    limits: Limits
    fates: Fates


Policies = Mapping[str, Policy]
