"""`caisson up`: the whole plane in the foreground, until Ctrl-C."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from caisson.stack.children import StackError
from caisson.stack.mirror import mirror_logs
from caisson.stack.private_files import write_private
from caisson.stack.stack import Stack

DEFAULT_DATA = Path(".caisson")
DEFAULT_UPSTREAMS = Path("config/upstreams.yaml")
_HOST = "127.0.0.1"
_INTERRUPTED_TWICE = 130


def up(
    *,
    runners: Annotated[int, typer.Option(min=1, max=64, help="How many runner processes.")] = 1,
    data: Annotated[Path, typer.Option(help="Folder for everything that is kept.")] = DEFAULT_DATA,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0 picks a free one.")] = 0,
    upstreams: Annotated[
        Path | None, typer.Option(help=f"The declared upstreams; {DEFAULT_UPSTREAMS} where there is one.")
    ] = None,
    ready_json: Annotated[
        Path | None, typer.Option(help="File for addresses, key and process ids, written once all is ready.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the logs of the services.")] = False,
) -> None:
    """Run the whole plane on this machine: PostgreSQL, NATS, gateway, memory, proxy and runners, until Ctrl-C."""
    console = Console(stderr=True, highlight=False)
    _log_plainly()
    try:
        _check_free(port)
        stack = Stack(data, runners=runners, port=port, upstreams=_find_upstreams(upstreams))
        asyncio.run(_serve(stack, console, ready_json=ready_json, verbose=verbose))
    except StackError as error:
        console.print(f"[bold red]caisson up:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from None


async def _serve(stack: Stack, console: Console, *, ready_json: Path | None, verbose: bool) -> None:
    _drain_on_signals(console)
    mirror = asyncio.create_task(mirror_logs(stack.folder.logs, sys.stderr)) if verbose else None
    try:
        async with stack:
            if ready_json is not None:
                stack.on_change = lambda: write_private(ready_json, stack.describe())
                stack.on_change()
            console.print(_introduction(stack))
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        console.print("Stopped. Everything is kept; the next start goes on from here.")
    finally:
        if mirror is not None:
            mirror.cancel()


def _drain_on_signals(console: Console) -> None:
    """Let the first signal end the running task in order; a second one ends all processes at once."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def at_once() -> None:
        os._exit(_INTERRUPTED_TWICE)

    def drain() -> None:
        console.print("Draining: running steps may finish … (again to stop at once)")
        for number in signals:
            loop.add_signal_handler(number, at_once)
        if task is not None:
            task.cancel()

    for number in signals:
        loop.add_signal_handler(number, drain)


def _check_free(port: int) -> None:
    """Say plainly that a port is taken, before anything is started."""
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        raise StackError(f"port {port} cannot be used: {error.strerror}") from None


def _find_upstreams(given: Path | None) -> Path | None:
    if given is not None and not given.is_file():
        raise StackError(f"there is no file {given} to read upstreams from")
    return given or (DEFAULT_UPSTREAMS if DEFAULT_UPSTREAMS.is_file() else None)


def _introduction(stack: Stack) -> Table:
    key = stack.folder.platform_key_file
    at_default = stack.folder.path == DEFAULT_DATA.resolve()
    setup = "" if at_default else f"CAISSON_URL={stack.url} CAISSON_API_KEY=$(cat {key}) "
    processes = " · ".join(f"{name} {' '.join(map(str, pids))}" for name, pids in stack.describe()["pids"].items())
    table = Table.grid(padding=(0, 2))
    for label, value in (
        ("Caisson", "is ready; Ctrl-C stops it"),
        ("API", f"{stack.url}  (documentation at {stack.url}/docs)"),
        ("key", str(key)),
        ("logs", str(stack.folder.logs)),
        ("processes", processes),
        ("try it", f"{setup}caisson exec 'echo hi'"),
    ):
        table.add_row(f"[bold cyan]{label}[/]", escape(value))
    return table


def _log_plainly() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
