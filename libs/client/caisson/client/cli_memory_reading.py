"""Declares what reads memories: `caisson memory search`, `list`, `show` and `history`."""

from typing import Annotated

import typer

from caisson.client.cli_memory_options import AsOf, Layer, Layers, MemoryId, Scopes
from caisson.client.cli_options import AsJson, Limit, Tenant, User, connect


def declare(memory: typer.Typer) -> None:
    """Add the commands."""
    memory.command()(search)
    memory.command("list")(list_memories)
    memory.command()(show)
    memory.command()(history)


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
