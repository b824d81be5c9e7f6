"""The environment of each service: the settings that a deployment gives it, and nothing else of the caller's.

Invariant: a runner's environment holds no secret but its NATS password and the channel key.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from caisson.stack.data_folder import Keyring

_INHERITED = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "PYTHONHASHSEED", "SSL_CERT_FILE"}
_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """What every service must be able to reach, and the secrets for it."""

    database_url: str
    nats_url: str
    keyring: Keyring


def gateway(servers: Servers, *, ports_file: Path, port: int) -> dict[str, str]:
    """Return the environment of a gateway."""
    return _common("gateway", servers, ports_file) | {
        "GATEWAY_DATABASE_URL": servers.database_url,
        "GATEWAY_HTTP_PORT": str(port),
        "GATEWAY_PROXY_PUBLIC_KEY": servers.keyring.proxy_public_key,
    }


def proxy(servers: Servers, *, ports_file: Path, port: int, upstreams: Path) -> dict[str, str]:
    """Return the environment of a proxy; upstreams may name any variable of the caller as a credential."""
    return (
        dict(os.environ)
        | _common("proxy", servers, ports_file)
        | {
            "PROXY_LISTEN_PORT": str(port),
            "PROXY_PRIVATE_KEY": servers.keyring.proxy_private_key,
            "PROXY_CHANNEL_KEY": servers.keyring.channel_key,
            "PROXY_UPSTREAMS_FILE": str(upstreams),
        }
    )


def memory(servers: Servers, *, ports_file: Path, index: Path) -> dict[str, str]:
    """Return the environment of a memory service."""
    return _common("memory", servers, ports_file) | {
        "MEMORY_DATABASE_URL": servers.database_url,
        "MEMORY_INDEX_DIR": str(index),
    }


def runner(servers: Servers, *, ports_file: Path, name: str, workspaces: Path, proxy_port: int) -> dict[str, str]:
    """Return the environment of a runner."""
    return _common("runner", servers, ports_file) | {
        "RUNNER_NAME": name,
        "RUNNER_PROXY_HOST": _HOST,
        "RUNNER_PROXY_PORT": str(proxy_port),
        "RUNNER_CHANNEL_KEY": servers.keyring.channel_key,
        "RUNNER_WORKSPACES_DIR": str(workspaces),
    }


def _common(service: str, servers: Servers, ports_file: Path) -> dict[str, str]:
    prefix = f"{service.upper()}_"
    return _inherited(os.environ, prefix) | {
        f"{prefix}NATS_URL": servers.nats_url,
        f"{prefix}NATS_PASSWORD": servers.keyring.nats_passwords[service],
        f"{prefix}ADMIN_PORT": "0",
        f"{prefix}ADMIN_PORT_FILE": str(ports_file),
    }


def _inherited(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name in _INHERITED or name.startswith(prefix)}
