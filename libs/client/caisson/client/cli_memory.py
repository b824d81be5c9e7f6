"""Declares `caisson memory`: what people do with what is remembered about them."""

from datetime import datetime
from typing import Annotated, Any

import typer

from caisson.client import cli_memory_upkeep
from caisson.client.cli_options import AsJson, Limit, Tenant, User, connect, read_metadata
from caisson.client.plugins import PluggableMemoryGroup

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="Id of a memory, or the product's own id of it.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="SCOPE", help="Grant a scope (platform keys only); may be repeated."),
]
AsOf = Annotated[
    datetime | None, typer.Option("--as-of", metavar="TIME", help="What was in force then, by this machine's clock.")
]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural; may be repeated."),
]
Layer = Annotated[
    str | None, typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural.")
]
Importance = Annotated[float | None, typer.Option("--importance", min=0, max=1, help="From 0 to 1.", metavar="X")]
Expires = Annotated[
    datetime | None, typer.Option("--expires", metavar="TIME", help="When it ends, by this machine's clock.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")]
Metadata = Annotated[
    str | None, typer.Option("--metadata", metavar="JSON", help="The product's own data, a JSON object.")
]

memory = typer.Typer(cls=PluggableMemoryGroup)


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(
        memory,
        name="memory",
        help="What is remembered: add, search, correct, forget.",
        rich_help_panel="Memory",
        no_args_is_help=True,
    )
    cli_memory_upkeep.declare(memory)


@memory.command()
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
    expires_at: Expires = None,
    tags: Tags = None,
    metadata: Metadata = None,
    external_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The product's own id of it.")] = None,
    outcome: Annotated[str | None, typer.Option(metavar="TEXT", help="How an episode ended.")] = None,
    run_id: Annotated[str | None, typer.Option("--run", metavar="RUN", help="The run that it comes from.")] = None,
    session_id: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session that it comes from.")
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
    origin = {"run_id": run_id, "session_id": session_id}
    provenance: dict[str, Any] = {name: value for name, value in origin.items() if value}
    if run_id:
        provenance["kind"] = "run"
    fields = {
        "layer": layer,
        "scopes": into,
        "subject": subject,
        "attribute": attribute,
        "importance": importance,
        "expires_at": expires_at,
        "tags": tags,
        "metadata": read_metadata(metadata),
        "external_id": external_id,
        "outcome": outcome,
        "provenance": provenance or None,
        "confirmations": int(confirmed) or None,
    }
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories
    from caisson.client.commands.memory_files import read_text

    desk.perform(
        connection, lambda at: memories.add(at, read_text(text), fields, scopes=scopes or ()), as_json=as_json
    )


@memory.command()
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to recall.")],
    k: Annotated[int | None, typer.Option("-k", min=1, metavar="N", help="How many at most.  [8]")] = None,
    token_budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, metavar="TOKENS", help="Tokens at most, in whole memories.  [2000]"),
    ] = None,
    layers: Layers = None,
    as_of: AsOf = None,
    session_id: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Search what this session keeps, too.")
    ] = None,
    as_context: Annotated[
        bool, typer.Option("--context", help="Write the text for a model instead: quoted, with provenance.")
    ] = False,
    must_be_whole: Annotated[
        bool, typer.Option("--fail-if-degraded", help="Rather fail than search without the index.")
    ] = False,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Recall the memories nearest to a query, and tell on stderr what happened on the way."""
    wishes = {
        "k": k,
        "token_budget": token_budget,
        "layers": layers,
        "as_of": as_of,
        "session_id": session_id,
        "on_degraded": "fail" if must_be_whole else None,
    }
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    job = memories.context if as_context else memories.search
    desk.perform(connection, lambda at: job(at, query, wishes, scopes=scopes or ()), as_json=as_json)


@memory.command("list")
def list_memories(
    context: typer.Context,
    layer: Layer = None,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="active or cold only.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Facts about a subject only.")] = None,
    as_of: AsOf = None,
    limit: Limit = 20,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """List what the user may see, newest first."""
    wishes = {"layer": layer, "status": status, "subject": subject, "as_of": as_of, "limit": limit}
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    desk.perform(connection, lambda at: memories.listing(at, wishes, scopes=scopes or ()), as_json=as_json)


@memory.command()
def show(
    context: typer.Context,
    memory_id: MemoryId,
    as_of: AsOf = None,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Show a memory with its provenance."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    desk.perform(
        connection, lambda at: memories.show(at, memory_id, as_of=as_of, scopes=scopes or ()), as_json=as_json
    )


@memory.command()
def history(
    context: typer.Context,
    memory_id: MemoryId,
    as_of: AsOf = None,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """List every version of a memory and of the facts before and after it, oldest first."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    desk.perform(
        connection, lambda at: memories.history(at, memory_id, as_of=as_of, scopes=scopes or ()), as_json=as_json
    )


@memory.command()
def edit(
    context: typer.Context,
    memory_id: MemoryId,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="The corrected text.")] = None,
    importance: Importance = None,
    expires_at: Expires = None,
    tags: Tags = None,
    metadata: Metadata = None,
    wake: Annotated[bool, typer.Option("--wake", help="Let a cold memory be recalled again.")] = False,
    version: Annotated[int | None, typer.Option(metavar="N", help="Only if it is still at this version.")] = None,
    scopes: Scopes = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Correct a memory; what is not given stays."""
    given = {
        "text": text,
        "importance": importance,
        "expires_at": expires_at,
        "tags": tags,
        "metadata": read_metadata(metadata),
        "status": "active" if wake else None,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise typer.BadParameter("nothing to change is given")
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memories

    job = changes | {"expected_version": version}
    desk.perform(connection, lambda at: memories.edit(at, memory_id, job, scopes=scopes or ()), as_json=as_json)


@memory.command()
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
