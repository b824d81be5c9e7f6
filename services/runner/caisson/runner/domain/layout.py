"""What a command finds inside its box: fixed paths and the one address that it can reach."""

from typing import Final

WORKSPACE: Final = "/workspace"
COMMAND_PATH: Final = "/opt/caisson/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""The `PATH` of every command: the curl wrapper comes first."""

BRIDGE_ADDRESS: Final = "127.0.0.1"
BRIDGE_PORT: Final = 9191
API_HOST: Final = f"http://{BRIDGE_ADDRESS}:{BRIDGE_PORT}"
