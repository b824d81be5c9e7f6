"""What a runner is told: prefix `RUNNER_`."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from caisson.common.settings import Secret, ServiceSettings


class Isolation(StrEnum):
    """Which mechanism separates tenants."""

    TENANT_UID = "tenant-uid"


class RunnerSettings(ServiceSettings):
    """Settings of one runner process."""

    model_config = SettingsConfigDict(env_prefix="RUNNER_")

    nats_user: str = Field(default="runner", description="this service's NATS user")
    name: str = Field(default="runner", max_length=64, description="shown in logs; worker ids are unique per start")
    slots: int = Field(default=8, ge=1, le=256, description="runs worked on at once")
    isolation: Isolation = Field(default=Isolation.TENANT_UID, description="tenant-uid; needs root")
    workspaces_dir: Path = Field(
        default=Path("/var/lib/caisson/workspaces"), description="where workspaces are mounted"
    )
    rootfs_dir: Path = Field(default=Path("/"), description="the read-only system tree that commands see")
    proxy_host: str = Field(default="127.0.0.1", description="host of the auth proxy")
    proxy_port: int = Field(default=9190, ge=1, le=65535, description="port of the auth proxy")
    channel_key: Secret = Field(
        description="HMAC key shared with the proxy: it proves which run a channel belongs to"
    )
    heartbeat_s: float = Field(default=3, gt=0, description="how often leases are renewed")
    poll_s: float = Field(default=1, gt=0, description="how often work is asked for without a doorbell")
    drain_s: float = Field(default=20, ge=0, description="how long SIGTERM waits for running steps before releasing")
    warm_namespaces: int = Field(default=8, ge=1, le=256, description="network namespaces kept ready")
