"""Settings: one class per service, read once from the environment or a folder of secret files.

Invariant: a service never starts with a secret missing or left at the documented example value.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from caisson.common.errors import FieldError, Misconfigured

EXAMPLE_SECRET = "change-me"  # noqa: S105 - the documented example, refused at start
SECRETS_DIR_VARIABLE = "CAISSON_SECRETS_DIR"


def _not_the_example(value: SecretStr) -> SecretStr:
    if value.get_secret_value() in {"", EXAMPLE_SECRET}:
        raise ValueError("is empty or still the documented example value")
    return value


Secret = Annotated[SecretStr, AfterValidator(_not_the_example)]


class ServiceSettings(BaseSettings):
    """What every service is told."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore")

    nats_url: str = Field(default="nats://127.0.0.1:4222", description="address of the NATS server")
    nats_user: str = Field(description="this service's NATS user")
    nats_password: Secret = Field(description="password of the NATS user")
    admin_host: str = Field(default="127.0.0.1", description="where /healthz, /readyz and /metrics listen")
    admin_port: int = Field(default=0, ge=0, le=65535, description="port of the same; 0 picks a free one")
    admin_port_file: Path | None = Field(
        default=None, description="file to write the bound addresses to, as JSON, once the service is ready"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error"
    )
    otlp_endpoint: str | None = Field(
        default=None, description="OTLP/HTTP endpoint for traces; unset means no tracing"
    )


Settings = TypeVar("Settings", bound=BaseSettings)


def load(settings: type[Settings]) -> Settings:
    """Read settings from the environment and from the files in `$CAISSON_SECRETS_DIR`.

    Raises:
        Misconfigured: naming every variable that is missing or wrong, never its value.
    """
    try:
        return settings(_secrets_dir=os.environ.get(SECRETS_DIR_VARIABLE))
    except ValidationError as error:
        prefix = str(settings.model_config.get("env_prefix", ""))
        fields = tuple(
            FieldError(field=(prefix + ".".join(str(part) for part in item["loc"])).upper(), message=item["msg"])
            for item in error.errors(include_input=False, include_url=False)
        )
        told = "; ".join(f"{item.field}: {item.message}" for item in fields)
        raise Misconfigured(f"settings are not usable: {told}", fields=fields) from None
