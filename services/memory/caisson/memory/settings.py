"""What the memory service is told: prefix `MEMORY_`."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from caisson.common.settings import Secret, ServiceSettings


class IndexEngine(StrEnum):
    """Where vectors live: in this process, or in a Qdrant server."""

    EDGE = "edge"
    SERVER = "server"


class EmbedderKind(StrEnum):
    """What turns text into vectors."""

    MINILM = "minilm"
    HTTP = "http"
    WORDLLAMA = "wordllama"


class EmbedderSettings(BaseSettings):
    """Which embedder, for whoever needs one."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_", frozen=True, extra="ignore")

    embedder: EmbedderKind = Field(default=EmbedderKind.MINILM, description="minilm, http or wordllama")
    embedder_url: str | None = Field(default=None, description="OpenAI-compatible base URL, for embedder=http")
    embedder_model: str | None = Field(default=None, description="model name, for embedder=http")
    embedder_dimensions: int | None = Field(default=None, ge=1, description="vector length, for embedder=http")
    embedder_api_key: Secret | None = Field(default=None, description="API key of the embeddings endpoint")


class CommandSettings(EmbedderSettings):
    """Settings of the commands that work beside the service."""

    database_url: Secret | None = Field(default=None, description="PostgreSQL URL of the schema memory")


class MemorySettings(EmbedderSettings, ServiceSettings):
    """Settings of one memory replica."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_")

    nats_user: str = Field(default="memory", description="this service's NATS user")
    database_url: Secret = Field(description="PostgreSQL URL of the schema memory")
    database_connections: int = Field(default=8, ge=4, le=100, description="connections to PostgreSQL at most")
    index: IndexEngine = Field(default=IndexEngine.EDGE, description="edge (one replica) or server")
    index_dir: Path = Field(default=Path("/var/lib/caisson/memory"), description="folder of the embedded index")
    erase_within_s: float = Field(
        default=3_600, ge=0, description="how long the embedded index's files may hold what was deleted"
    )
    qdrant_url: str | None = Field(default=None, description="URL of the Qdrant server, for index=server")
    qdrant_api_key: Secret | None = Field(default=None, description="API key of the Qdrant server")
    gate_set: str | None = Field(
        default=None, description="digest of the question set that the gate must be calibrated on; unset accepts any"
    )
    chat_url: str | None = Field(
        default=None, description="OpenAI-compatible base URL of the model that words distillates and summaries"
    )
    chat_model: str | None = Field(default=None, description="its name")
    chat_api_key: Secret | None = Field(default=None, description="API key of its endpoint")
    relay_poll_s: float = Field(default=1, gt=0, description="slow poll of the index outbox")
    sweep_s: float = Field(default=60, gt=0, description="pause between two housekeeping passes")
    consolidate_episodes: int = Field(
        default=100, ge=0, description="an owner's long unused episodes from which on they are consolidated; 0 never"
    )
    consolidate_s: float = Field(default=86_400, gt=0, description="pause between two passes of consolidation")
    user_quota_rows: int = Field(default=10_000, gt=0, description="memories of one user at most")
    user_quota_mib: int = Field(default=64, gt=0, description="bytes of one user's memories at most")
    tenant_quota_rows: int = Field(default=200_000, gt=0, description="memories of one tenant at most")
    tenant_quota_mib: int = Field(default=1_024, gt=0, description="bytes of one tenant's memories at most")
