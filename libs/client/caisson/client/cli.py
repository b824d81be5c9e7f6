"""The `caisson` command: declarations only; what a command needs is imported when it runs."""

import sys
from typing import Annotated

import typer

from caisson.client import cli_administration, cli_doctor, cli_memory, cli_runs
from caisson.client.cli_options import AsJson
from caisson.client.plugins import PluggableGroup

_HELP = (
    "The command line of Caisson, the execution plane for AI agents.\n\n"
    "The gateway and the key come from the flags below, else from $CAISSON_URL and $CAISSON_API_KEY, else from "
    "./.caisson/client.json, which `caisson up` writes. A platform key acts for --tenant and --user, else for "
    "$CAISSON_TENANT and $CAISSON_USER, else for tenant 'default' and user 'cli'."
)
EXIT_CODES = (
    ("0", "succeeded"),
    ("n", "the command exited with n"),
    ("128+s", "ended by signal s"),
    ("124", "timed out"),
    ("125", "not started"),
    ("126", "blocked by a guard"),
    ("130", "cancelled"),
    ("137", "memory, process or disk limit"),
    ("75", "unknown: the worker was lost"),
    ("1", "the gateway refused or cannot be reached"),
    ("2", "wrong usage"),
)
EPILOG = "Exit codes of exec and run: " + " · ".join(f"[bold]{code}[/] {told}" for code, told in EXIT_CODES)

app = typer.Typer(
    cls=PluggableGroup,
    help=_HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    url: Annotated[str | None, typer.Option(metavar="URL", help="URL of the gateway.")] = None,
    api_key: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="API key, from env:VARIABLE or @FILE (never on the command line)."),
    ] = None,
) -> None:
    """Hold the options for the commands; see `cli_options.connect`."""


cli_runs.declare(app)
cli_memory.declare(app)
cli_administration.declare(app)
cli_doctor.declare(app)


@app.command(rich_help_panel="This machine")
def version(as_json: AsJson = False) -> None:
    """Print the version of this client."""
    import json
    from importlib.metadata import version as version_of

    found = version_of("caisson-client")
    typer.echo(json.dumps({"version": found}) if as_json else f"caisson {found}")


def main() -> None:
    """Run the command line."""
    # httpx imports its own command line (click, pygments, rich) where it can: two thirds of its time to load
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None makes it do without, as by default
    app(prog_name="caisson")
