"""Declares `caisson exec`, `run`, `runs`, `events` and `cancel`."""

from typing import Annotated, Any

import typer

from caisson.client.cli_options import AsJson, Limit, Tenant, User, connect, read_credential, read_pairs

_PANEL = "Runs"
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run (run_…).")]


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("exec", rich_help_panel=_PANEL)(execute)
    app.command("run", rich_help_panel=_PANEL)(run)
    app.command("runs", rich_help_panel=_PANEL)(list_runs)
    app.command("events", rich_help_panel=_PANEL)(events)
    app.command("cancel", rich_help_panel=_PANEL)(cancel)


def execute(
    context: typer.Context,
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="A bash command, as one argument.")],
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="End the command after S seconds.")
    ] = None,
    session_id: Annotated[str | None, typer.Option("--session", metavar="ID", help="Run it in a session.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Set a variable; may be repeated.")
    ] = None,
    datasets: Annotated[
        list[str] | None, typer.Option("--dataset", metavar="ID", help="Allow a dataset; may be repeated.")
    ] = None,
    upstreams: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream",
            metavar="NAME=SOURCE",
            help="The user's token for an upstream, from env:VARIABLE or @FILE (header:… if it is no bearer token); "
            "may be repeated.",
        ),
    ] = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Run one bash command in a sandbox; its output and its exit code become ours.

    Ctrl-C cancels the run, a second Ctrl-C leaves it. `caisson --help` lists the exit codes.
    """
    bash: dict[str, Any] = {"command": command} | ({} if timeout_s is None else {"timeout_s": timeout_s})
    optional = {
        "session_id": session_id,
        "env": read_pairs(env, "--env"),
        "datasets": datasets,
        "upstreams": _read_upstreams(upstreams),
    }
    body = {"steps": [{"bash": bash}]} | {name: value for name, value in optional.items() if value}
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, runs

    desk.perform(connection, lambda at: runs.execute(at, body), as_json=as_json)


def run(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON or YAML: the body of POST /v1/runs; - reads stdin.")
    ],
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, print its id and leave.")] = False,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Start the run that a file describes, and follow it to its end.

    The steps' output goes to stdout and stderr as it is, everything else to stderr. Ctrl-C cancels the run, a second
    Ctrl-C leaves it. With --json the finished run is written as one document.
    """
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, run_files, runs
    from caisson.client.configuration import NotConfigured

    try:
        body = run_files.read_body(file)
    except NotConfigured as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    desk.perform(connection, lambda at: runs.run_file(at, body, detach=detach), as_json=as_json)


def list_runs(
    context: typer.Context,
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help="queued, running, waiting, succeeded, failed or cancelled only."),
    ] = None,
    session_id: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Runs of one session only.")
    ] = None,
    limit: Limit = 20,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, runs

    desk.perform(
        connection,
        lambda at: runs.list_runs(at, status=status, session_id=session_id, limit=limit),
        as_json=as_json,
    )


def events(
    context: typer.Context,
    run_id: RunId,
    after: Annotated[int | None, typer.Option(min=0, metavar="N", help="Begin after event number N.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run is finished, across broken connections.")
    ] = False,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Write the events of a run, from the start.

    Without --follow it ends with the run, or when nothing more comes for a second.
    """
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, runs

    desk.perform(connection, lambda at: runs.events(at, run_id, after=after, follow=follow), as_json=as_json)


def cancel(
    context: typer.Context, run_id: RunId, tenant: Tenant = None, user: User = None, as_json: AsJson = False
) -> None:
    """Cancel a run in whatever state it is; a cancelled run never starts again."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, runs

    desk.perform(connection, lambda at: runs.cancel(at, run_id), as_json=as_json)


def _read_upstreams(given: list[str] | None) -> dict[str, dict[str, str]]:
    sources = read_pairs(given, "--upstream")
    return {name: dict([read_credential(source, "--upstream")]) for name, source in sources.items()}
