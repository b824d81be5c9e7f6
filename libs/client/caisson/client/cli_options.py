"""Options that several commands share, and how their values are read."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from caisson.client.configuration import Connection

Tenant = Annotated[
    str | None, typer.Option("--tenant", help="Tenant to act for.  [$CAISSON_TENANT, else 'default']", metavar="ID")
]
User = Annotated[
    str | None, typer.Option("--user", help="User to act for.  [$CAISSON_USER, else 'cli']", metavar="ID")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON; JSON lines for lists and streams.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.", metavar="N")]


def connect(context: typer.Context, tenant: str | None = None, user: str | None = None) -> "Connection":
    """Find the gateway and the key for a command; exits with 2 where they are missing."""
    from caisson.client.configuration import NotConfigured, resolve

    root = context.find_root().params
    try:
        return resolve(url=root.get("url"), api_key_from=root.get("api_key"), tenant=tenant, user=user)
    except NotConfigured as error:
        raise typer.BadParameter(str(error)) from None


def read_time(given: str) -> datetime:
    """Read a time in ISO 8601; one without an offset is by this machine's clock."""
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        told = "must be a day or a time, as in 2026-03-01, 2026-03-01T10:00 or 2026-03-01T10:00:00Z"
        raise typer.BadParameter(told) from None


def read_pairs(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Read repeated NAME=VALUE options; a message names the option, never the value."""
    values: dict[str, str] = {}
    for pair in pairs or []:
        name, separator, value = pair.partition("=")
        if not name or not separator:
            raise typer.BadParameter("must be NAME=VALUE", param_hint=option)
        if name in values:
            raise typer.BadParameter(f"{name} is given twice", param_hint=option)
        values[name] = value
    return values


def read_credential(source: str, option: str) -> tuple[str, str]:
    """Read `[bearer:|header:]env:VARIABLE` or `[bearer:|header:]@FILE` into (kind, value)."""
    import os

    from caisson.client.configuration import NotConfigured, read_secret

    kind, separator, rest = source.partition(":")
    if not separator or kind not in {"bearer", "header"}:
        kind, rest = "bearer", source
    try:
        return kind, read_secret(rest, os.environ)
    except NotConfigured as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def read_metadata(given: str | None) -> dict[str, object] | None:
    """Read the --metadata option: a JSON object."""
    import json

    if given is None:
        return None
    try:
        value = json.loads(given)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise typer.BadParameter("must be a JSON object", param_hint="--metadata")
    return value
