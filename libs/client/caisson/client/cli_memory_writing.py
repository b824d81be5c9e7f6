"""Declares what changes memories: `caisson memory add`, `edit` and `forget`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from caisson.client.cli_memory_options import (
    Confidence,
    Expires,
    Importance,
    Layer,
    MemoryId,
    Metadata,
    Scopes,
    Tags,
    ValidTo,
)
from caisson.client.cli_options import AsJson, Tenant, User, connect, read_metadata, read_time


def declare(memory: typer.Typer) -> None:
    """Add the commands."""
    memory.command()(add)
    memory.command()(edit)
    memory.command()(forget)


def add(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads stdin.")],
    layer: Layer = None,
    into: Annotated[
        list[str] | None,
        typer.Option(
            "--in", metavar="SCOPE", help="Who may read it: tenant, or a granted scope; else the user alone."
        ),
    ] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="What the fact is about.")] = None,
    attribute: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which fact of the subject: a newer one replaces the older.")
    ] = None,
    importance: Importance = None,
    confidence: Confidence = None,
    valid_from: Annotated[
        datetime | None,
        typer.Option(
            "--valid-from", parser=read_time, metavar="TIME", help="Since when it is true, if not from now."
        ),
    ] = None,
    valid_to: ValidTo = None,
    expires_at: Expires = None,
    tags: Tags = None,
    metadata: Metadata = None,
    external_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The product's own id of it.")] = None,
    outcome: Annotated[str | None, typer.Option(metavar="TEXT", help="How an episode ended.")] = None,
    run_id: Annotated[str | None, typer.Option("--run", metavar="RUN", help="The run that it comes from.")] = None,
    session_id: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session that it comes from.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="What it comes from: a memory's id, or a name.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Who says it: person, run, tool or import; without it a person, or a run with --run.",
        ),
    ] = None,
    confirmed: Annotated[
        bool, typer.Option("--confirmed", help="A person says so on purpose, even though it was forgotten.")
    ] = False,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Remember one thing, and tell what became of it; exits with 1 where it is rejected."""
    origin = {
        "kind": kind or ("run" if run_id else None),
        "run_id": run_id,
        "session_id": session_id,
        "source": source,
    }
    fields = {
        "layer": layer,
        "scopes": into,
        "subject": subject,
        "attribute": attribute,
        "importance": importance,
        "confidence": confidence,
        "valid_from": valid_from,
        "valid_to": valid_to,
        "expires_at": expires_at,
        "tags": tags,
        "metadata": read_metadata(metadata),
        "external_id": external_id,
        "outcome": outcome,
        "provenance": _given(origin) or None,
        "confirmations": int(confirmed) or None,
    }
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories
    from caisson.client.commands.memory_files import read_text

    desk.perform(
        connection, lambda at: memories.add(at, read_text(text), fields, scopes=scopes or ()), as_json=as_json
    )


def edit(
    context: typer.Context,
    memory_id: MemoryId,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="The corrected text.")] = None,
    importance: Importance = None,
    confidence: Confidence = None,
    valid_to: ValidTo = None,
    no_valid_to: Annotated[bool, typer.Option("--no-valid-to", help="It is true without an end.")] = False,
    expires_at: Expires = None,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="It is kept for good.")] = False,
    tags: Tags = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="It has no tags.")] = False,
    metadata: Metadata = None,
    wake: Annotated[bool, typer.Option("--wake", help="Let a cold memory be recalled again.")] = False,
    version: Annotated[int | None, typer.Option(metavar="N", help="Only if it is still at this version.")] = None,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Correct a memory; what is not given stays."""
    for option, is_set, value in (
        ("--no-valid-to", no_valid_to, valid_to),
        ("--no-expiry", no_expiry, expires_at),
        ("--no-tags", no_tags, tags),
    ):
        if is_set and value:
            raise typer.BadParameter("given together with what it removes", param_hint=option)
    removed = [name for name, is_set in (("valid_to", no_valid_to), ("expires_at", no_expiry)) if is_set]
    given = {
        "text": text,
        "importance": importance,
        "confidence": confidence,
        "valid_to": valid_to,
        "expires_at": expires_at,
        "remove": removed or None,
        "tags": [] if no_tags else tags,
        "metadata": read_metadata(metadata),
        "status": "active" if wake else None,
    }
    changes = _given(given)
    if not changes:
        raise typer.BadParameter("nothing to change is given")
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    job = changes | {"expected_version": version}
    desk.perform(connection, lambda at: memories.edit(at, memory_id, job, scopes=scopes or ()), as_json=as_json)


def forget(
    context: typer.Context,
    memory_id: MemoryId,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Forget a memory and everything made from it; prints the receipt."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    desk.perform(connection, lambda at: memories.forget(at, memory_id, scopes=scopes or ()), as_json=as_json)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
