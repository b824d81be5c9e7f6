"""Declares `caisson memory`: what people do with what is remembered about them."""

import typer

from caisson.client import cli_memory_reading, cli_memory_upkeep, cli_memory_writing
from caisson.client.plugins import PluggableMemoryGroup


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    memory = typer.Typer(cls=PluggableMemoryGroup)
    app.add_typer(
        memory,
        name="memory",
        help="What is remembered: add, search, correct, forget.",
        rich_help_panel="Memory",
        no_args_is_help=True,
    )
    cli_memory_writing.declare(memory)
    cli_memory_reading.declare(memory)
    cli_memory_upkeep.declare(memory)
