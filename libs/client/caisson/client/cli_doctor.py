"""Declares `caisson doctor`."""

from typing import Annotated

import typer

from caisson.client.cli_options import AsJson, connect


def declare(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", rich_help_panel="This machine")(doctor)


def doctor(
    context: typer.Context,
    proxy_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Admin URL of the proxy, to ask its /readyz too. Known after `caisson up`."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove the isolation of a running stack from inside its sandboxes, check by check.

    Needs a platform key. It acts for its own throw-away tenants, caisson-doctor-a and caisson-doctor-b; what it tries
    is refused and counted, so the security counters rise by it. Exits with 0 only if every check holds.
    """
    connection = connect(context)
    from caisson.client.commands import desk, doctor

    admin_url = proxy_url or connection.proxy_admin_url
    desk.perform(connection, lambda at: doctor.examine(at, proxy_url=admin_url), as_json=as_json)
