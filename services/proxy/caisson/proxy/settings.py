"""What the proxy is told: prefix `PROXY_`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from caisson.common.settings import Secret, ServiceSettings


class ProxySettings(ServiceSettings):
    """Settings of one proxy replica."""

    model_config = SettingsConfigDict(env_prefix="PROXY_")

    nats_user: str = Field(default="proxy", description="this service's NATS user")
    listen_host: str = Field(default="127.0.0.1", description="where sandboxes' channels arrive")
    listen_port: int = Field(default=9190, ge=0, le=65535, description="port of the same; 0 picks a free one")
    drain_s: float = Field(
        default=10, gt=0, description="how long requests may go on after the process is told to end"
    )
    private_key: Secret = Field(description="X25519 private key (base64) that opens sealed credentials")
    channel_key: Secret = Field(description="HMAC key shared with the runners")
    upstreams_file: Path = Field(default=Path("config/upstreams.yaml"), description="the declared upstreams (YAML)")
