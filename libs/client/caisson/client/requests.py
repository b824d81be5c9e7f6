"""What the client sends, typed. Limits of size and ceilings are the gateway's to check; forms are checked here.

Invariant: a value that JSON cannot carry (NaN, infinity) is refused, never turned into "not given".
"""

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_serializer

from caisson.client.errors import FieldError, InvalidInput

RequestT = TypeVar("RequestT", bound="Request")


class Request(BaseModel):
    """A frozen request; unknown fields are refused, fields not given are not sent."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        return self.model_dump(mode="json", exclude_none=True)


class Bash(Request):
    """A bash command."""

    command: str
    timeout_s: float | None = None


class Tool(Request):
    """A tool call."""

    name: str
    version: int | None = None
    arguments: dict[str, Any] = {}


class StepSpec(Request):
    """One step of a run: exactly one of its fields."""

    bash: Bash | None = None
    tool: Tool | None = None


class Limits(Request):
    """What a run may use; a limit not given takes the tenant's default."""

    timeout_s: float | None = None
    step_timeout_s: float | None = None
    memory_mib: int | None = None
    pids: int | None = None
    disk_mib: int | None = None
    cpus: float | None = None
    output_kib: int | None = None


class Upstream(Request):
    """The user's own credential for one upstream. It is sent once, sealed by the gateway, and never shown."""

    bearer: SecretStr | None = None
    header: SecretStr | None = None

    @field_serializer("bearer", "header", when_used="json-unless-none")
    def _reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()


class RunRequest(Request):
    """The body of `POST /v1/runs`."""

    session_id: str | None = None
    steps: list[StepSpec] = []
    env: dict[str, str] | None = None
    datasets: list[str] | None = None
    upstreams: dict[str, Upstream] | None = None
    limits: Limits | None = None
    on_failure: Literal["stop", "continue"] | None = None
    on_lost: Literal["retry", "stop"] | None = None
    metadata: dict[str, Any] | None = None


class ExecRequest(Request):
    """The body of `POST /v1/exec`."""

    command: str
    timeout_s: float | None = None
    session_id: str | None = None
    env: dict[str, str] | None = None
    datasets: list[str] | None = None
    upstreams: dict[str, Upstream] | None = None
    limits: Limits | None = None


class TenantSettings(Request):
    """The body of `PUT /v1/tenants/{id}`; a setting not given keeps its value."""

    limits: Limits | None = None
    ceilings: Limits | None = None
    max_concurrency: int | None = None
    max_attempts: int | None = None
    retention_days: int | None = None


class KeyRequest(Request):
    """The body of `POST /v1/keys`; without a tenant it is a platform key."""

    name: str
    tenant_id: str | None = None


def build(model: type[RequestT], fields: dict[str, Any]) -> RequestT:
    """Return the request with those of `fields` that are given.

    Raises:
        InvalidInput: naming each field that is not of its form; nothing was sent.
    """
    try:
        return model.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        errors = tuple(
            FieldError(field=".".join(str(part) for part in item["loc"]), message=item["msg"])
            for item in error.errors(include_input=False, include_url=False)
        )
        raise InvalidInput("the request is not of the API's form", errors=errors) from None
