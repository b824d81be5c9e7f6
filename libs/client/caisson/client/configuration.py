"""Where the command line finds the gateway: flags, environment, `./.caisson/client.json`.

Invariant: a key from the file goes to no other gateway than the file's, and a file that others could have written
is refused.
"""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CLIENT_FILE = Path(".caisson/client.json")
DEFAULT_TENANT = "default"
DEFAULT_USER = "cli"


class NotConfigured(ValueError):
    """The gateway's address or key is missing or cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Which gateway, with which key, for whom. `tenant` and `user` are None where nobody named them.

    `proxy_admin_url` is known for the plane of `caisson up`.
    """

    url: str
    api_key: str = field(repr=False)
    tenant: str | None
    user: str | None
    proxy_admin_url: str | None = None


def read_secret(source: str, environment: Mapping[str, str]) -> str:
    """Return a secret from `env:VARIABLE` or `@FILE` (without its last line end).

    Raises:
        NotConfigured: the source is of neither form or empty; the message does not repeat it.
    """
    if source.startswith("env:"):
        value = environment.get(source[4:], "")
        if not value:
            raise NotConfigured(f"the variable {source[4:]} is not set")
        return value
    if source.startswith("@"):
        value = _read(Path(source[1:])).removesuffix("\n").removesuffix("\r")
        if not value:
            raise NotConfigured(f"{source[1:]} is empty")
        return value
    raise NotConfigured("a secret is given as env:VARIABLE or @FILE, never as it is: other users see a command line")


def resolve(
    *,
    url: str | None,
    api_key_from: str | None,
    tenant: str | None,
    user: str | None,
    environment: Mapping[str, str] = os.environ,
    file: Path = CLIENT_FILE,
) -> Connection:
    """Combine flags, environment and file, in this order.

    Raises:
        NotConfigured: naming what is missing and where it could come from.
    """
    wanted_url = url or environment.get("CAISSON_URL")
    key = read_secret(api_key_from, environment) if api_key_from else environment.get("CAISSON_API_KEY")
    known = {} if wanted_url and key else read_client_file(file)
    found_url = wanted_url or known.get("url")
    if not found_url:
        raise NotConfigured(f"no gateway: give --url, set CAISSON_URL, or run `caisson up` (it writes {file})")
    if found_url.rstrip("/") != known.get("url", "").rstrip("/"):
        known = {}
    key = key or known.get("api_key")
    if not key:
        raise NotConfigured(
            f"no API key for {found_url}: give --api-key env:VARIABLE or @FILE, or set CAISSON_API_KEY"
        )
    return Connection(
        url=found_url,
        api_key=key,
        tenant=tenant or environment.get("CAISSON_TENANT") or None,
        user=user or environment.get("CAISSON_USER") or None,
        proxy_admin_url=known.get("proxy_admin_url"),
    )


def read_client_file(file: Path) -> dict[str, str]:
    """Return the `url` and `api_key` that `caisson up` wrote; nothing where there is no file.

    Raises:
        NotConfigured: the file is not ours alone, or not of its form.
    """
    try:
        status = file.stat()
    except OSError:
        return {}
    if status.st_uid not in {os.geteuid(), 0} or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotConfigured(f"{file} belongs to somebody else or can be written by others; it is not used")
    try:
        content: Any = json.loads(_read(file))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise NotConfigured(f"{file} is not a JSON object with url and api_key")
    return {name: value for name, value in content.items() if isinstance(value, str)}


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NotConfigured(f"cannot read {file}: {error.__class__.__name__}") from None
