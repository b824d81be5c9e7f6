"""Declares `caisson sessions`, `tenants`, `credentials`, `keys` and `security-events`."""

from datetime import datetime
from typing import Annotated

import typer

from caisson.client.cli_options import AsJson, Limit, Tenant, User, connect, read_credential, read_pairs, read_time

_PANEL = "Administration"
TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="Id of a tenant.")]
Upstream = Annotated[str, typer.Argument(metavar="UPSTREAM", help="Name of a declared upstream.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session (ses_…).")]


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    for name, group, told, panel in (
        ("sessions", sessions, "Conversations that group runs.", "Runs"),
        ("tenants", tenants, "Limits, ceilings, concurrency and retention of tenants.", _PANEL),
        ("credentials", credentials, "Tenants' credentials for upstreams: write-only.", _PANEL),
        ("keys", keys, "API keys.", _PANEL),
    ):
        app.add_typer(group, name=name, help=told, rich_help_panel=panel, no_args_is_help=True)
    app.command("security-events", rich_help_panel=_PANEL)(security_events)


sessions = typer.Typer()
tenants = typer.Typer()
credentials = typer.Typer()
keys = typer.Typer()


@sessions.command("create")
def create_session(context: typer.Context, tenant: Tenant = None, user: User = None, as_json: AsJson = False) -> None:
    """Start a session and print its id."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import administration, desk

    desk.perform(connection, administration.create_session, as_json=as_json)


@sessions.command("list")
def list_sessions(
    context: typer.Context, limit: Limit = 20, tenant: Tenant = None, user: User = None, as_json: AsJson = False
) -> None:
    """List sessions, newest first."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.list_sessions(at, limit=limit), as_json=as_json)


@sessions.command("show")
def show_session(
    context: typer.Context, session_id: SessionId, tenant: Tenant = None, user: User = None, as_json: AsJson = False
) -> None:
    """Show a session."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.show_session(at, session_id), as_json=as_json)


@sessions.command("delete")
def delete_session(
    context: typer.Context, session_id: SessionId, tenant: Tenant = None, user: User = None, as_json: AsJson = False
) -> None:
    """Delete a session: cancel what runs, remove its runs, outputs, events and memories."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.delete_session(at, session_id), as_json=as_json)


@tenants.command("show")
def show_tenant(context: typer.Context, tenant_id: TenantId, as_json: AsJson = False) -> None:
    """Show a tenant's settings."""
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.show_tenant(at, tenant_id), as_json=as_json)


@tenants.command("set")
def set_tenant(
    context: typer.Context,
    tenant_id: TenantId,
    max_concurrency: Annotated[int | None, typer.Option(metavar="N", help="Runs at the same time.")] = None,
    max_attempts: Annotated[int | None, typer.Option(metavar="N", help="Attempts when workers are lost.")] = None,
    retention_days: Annotated[int | None, typer.Option(metavar="DAYS", help="How long events are kept.")] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=VALUE", help="Default limit, e.g. memory_mib=512; may be repeated."),
    ] = None,
    ceilings: Annotated[
        list[str] | None,
        typer.Option("--ceiling", metavar="NAME=VALUE", help="Highest limit a run may ask for; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a tenant's settings; those not given stay."""
    connection = connect(context)
    from caisson.client.commands import administration, desk
    from caisson.client.errors import InvalidInput
    from caisson.client.requests import TenantSettings, build

    given = {
        "max_concurrency": max_concurrency,
        "max_attempts": max_attempts,
        "retention_days": retention_days,
        "limits": read_pairs(limits, "--limit") or None,
        "ceilings": read_pairs(ceilings, "--ceiling") or None,
    }
    try:
        settings = build(TenantSettings, given)
    except InvalidInput as error:
        told = "; ".join(f"{item.field}: {item.message}" for item in error.errors)
        raise typer.BadParameter(told) from None
    desk.perform(connection, lambda at: administration.set_tenant(at, tenant_id, settings), as_json=as_json)


@credentials.command("set")
def set_credential(
    context: typer.Context,
    tenant_id: TenantId,
    upstream: Upstream,
    bearer_from: Annotated[
        str | None, typer.Option("--bearer-from", metavar="SOURCE", help="Bearer token, from env:VARIABLE or @FILE.")
    ] = None,
    header_from: Annotated[
        str | None, typer.Option("--header-from", metavar="SOURCE", help="Header value, from env:VARIABLE or @FILE.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store a tenant's credential for an upstream; the next request uses it."""
    if (bearer_from is None) == (header_from is None):
        raise typer.BadParameter("give one of --bearer-from and --header-from")
    kind, option, source = (
        ("bearer", "--bearer-from", bearer_from) if bearer_from else ("header", "--header-from", header_from)
    )
    _, value = read_credential(source or "", option)
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(
        connection,
        lambda at: administration.set_credential(at, tenant_id, upstream, kind=kind, value=value),
        as_json=as_json,
    )


@credentials.command("delete")
def delete_credential(
    context: typer.Context, tenant_id: TenantId, upstream: Upstream, as_json: AsJson = False
) -> None:
    """Remove a tenant's credential for an upstream."""
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.delete_credential(at, tenant_id, upstream), as_json=as_json)


@keys.command("create")
def create_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="ID", help="Bind the key to this tenant.")] = None,
    platform: Annotated[
        bool, typer.Option("--platform", help="Make a platform key: it acts for any tenant.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once."""
    if (tenant is None) == (not platform):
        raise typer.BadParameter("give one of --tenant and --platform")
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.create_key(at, name, tenant_id=tenant), as_json=as_json)


@keys.command("list")
def list_keys(
    context: typer.Context,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Keys whose id begins so only.")] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List keys, newest first."""
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.list_keys(at, prefix=prefix, limit=limit), as_json=as_json)


@keys.command("revoke")
def revoke_key(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of a key (csn_…), without its secret.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once."""
    connection = connect(context)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.revoke_key(at, key_id), as_json=as_json)


def security_events(
    context: typer.Context,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=read_time, metavar="TIME", help="Those at or after a time only; without offset, by this clock."
        ),
    ] = None,
    limit: Limit = 50,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """List what guards, proxy and network blocked, newest first."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import administration, desk

    desk.perform(connection, lambda at: administration.security_events(at, since=since, limit=limit), as_json=as_json)
