"""The form of `upstreams.yaml`.

Invariant: what validates here can be compiled; unknown keys are errors, not silence.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from caisson.proxy.domain.templates import compile_place, compile_rule

_HEADER_NAME = r"^[A-Za-z0-9-]+$"
_SOURCE = re.compile(r"run|tenant|env [A-Za-z_][A-Za-z0-9_]*|file \S.*")

Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
"""TRACE would echo the credential and CONNECT would leave the policy behind."""


def _check_rule(text: str) -> str:
    compile_rule(text)
    return text


def _check_place(name: str) -> Any:
    def check(text: str) -> str:
        if compile_place(text).names != {name}:
            raise ValueError(f"must have one segment {{{name}}} and no other name")
        return text

    return AfterValidator(check)


def _check_source(text: str) -> str:
    if not _SOURCE.fullmatch(text):
        raise ValueError("must be: run, tenant, env NAME, or file PATH")
    return text


Source = Annotated[str, AfterValidator(_check_source)]


class Declaration(BaseModel):
    """A part of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Allowance(Declaration):
    """Methods that are allowed on the paths of a template."""

    methods: list[Method] = Field(min_length=1)
    path: Annotated[str, AfterValidator(_check_rule)]


class TenantPlace(Declaration):
    """One place where the upstream expects the tenant."""

    query: str | None = Field(default=None, pattern=r"^[^\[\]&=#+%\s]+$")
    header: str | None = Field(default=None, pattern=_HEADER_NAME)
    path: Annotated[str, _check_place("tenant")] | None = None
    document: str | None = Field(default=None, alias="json", pattern=r"^[^.]+(\.[^.]+)*$")

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("must be exactly one of: query, header, path, json")
        return self


class DatasetPlace(Declaration):
    """Paths that name a dataset."""

    path: Annotated[str, _check_place("dataset")]


class BearerCredential(Declaration):
    """A token in `Authorization: Bearer`."""

    source: Source = Field(alias="from")
    otherwise: Source | None = Field(default=None, alias="else")


class HeaderCredential(BearerCredential):
    """A key in a header of its own."""

    name: str = Field(pattern=_HEADER_NAME)


class CredentialDeclaration(Declaration):
    """How requests are authenticated."""

    bearer: BearerCredential | None = None
    header: HeaderCredential | None = None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("must be exactly one of: bearer, header")
        return self


class LimitsDeclaration(Declaration):
    """What a request may take."""

    connect_s: float = Field(default=5, gt=0, strict=False, allow_inf_nan=False)
    first_byte_s: float = Field(default=60, gt=0, strict=False, allow_inf_nan=False)
    idle_s: float = Field(default=120, gt=0, strict=False, allow_inf_nan=False)
    request_body_mib: float = Field(default=64, gt=0, strict=False, allow_inf_nan=False)
    json_body_kib: float = Field(default=1024, gt=0, strict=False, allow_inf_nan=False)


class UpstreamDeclaration(Declaration):
    """One upstream."""

    base_url: str
    ca_file: str | None = None
    allow: list[Allowance] = Field(min_length=1)
    tenant: list[TenantPlace] = []
    datasets: list[DatasetPlace] = []
    credential: CredentialDeclaration | None = None
    trusted: bool = False
    limits: LimitsDeclaration = LimitsDeclaration()


class UpstreamsDeclaration(Declaration):
    """The whole file. `upstreams: {}` says that nothing is reachable; a file that does not say so is refused."""

    upstreams: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")], UpstreamDeclaration]
