"""What the gateway is told: prefix `GATEWAY_`."""

from typing import Annotated

from nacl.encoding import Base64Encoder
from nacl.exceptions import CryptoError
from nacl.public import PublicKey
from pydantic import AfterValidator, Field
from pydantic_settings import SettingsConfigDict

from caisson.common.settings import Secret, ServiceSettings


def _public_key(value: str) -> str:
    try:
        PublicKey(value.encode(), Base64Encoder)
    except (CryptoError, TypeError, ValueError):
        raise ValueError("is no X25519 public key in base64") from None
    return value


class GatewaySettings(ServiceSettings):
    """Settings of one gateway replica."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_")

    nats_user: str = Field(default="gateway", description="this service's NATS user")
    database_url: Secret = Field(description="PostgreSQL URL of the ledger")
    database_connections: int = Field(default=10, ge=4, le=100, description="connections to PostgreSQL at most")
    http_host: str = Field(default="127.0.0.1", description="where the public API listens")
    http_port: int = Field(default=8080, ge=0, le=65535, description="port of the public API; 0 picks a free one")
    proxy_public_key: Annotated[str, AfterValidator(_public_key)] = Field(
        description="X25519 public key of the proxy (base64): credentials are sealed to it"
    )
    lease_s: float = Field(default=15, gt=0, description="how long a worker holds a run without renewing")
    heartbeat_s: float = Field(default=3, gt=0, description="how often workers renew; at most a third of lease_s")
    reconcile_s: float = Field(default=2, gt=0, description="pause between two passes of the reconciler")
    relay_poll_s: float = Field(default=1, gt=0, description="slow poll of the outbox behind LISTEN/NOTIFY")
    idempotency_ttl_s: float = Field(default=86_400, gt=0, description="how long an Idempotency-Key is remembered")
