"""Commands that other distributions add through the entry-point group `caisson.commands`.

Invariant: an entry point is imported only to run it or to show its own help, and one that cannot be imported breaks
no other command.
"""

import ast
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

GROUP = "caisson.commands"
MEMORY_GROUP = "caisson.commands.memory"
_PANEL = "This machine"


def find(group: str = GROUP) -> dict[str, EntryPoint]:
    """Return the entry points by command name; of two with one name, the first by distribution stands."""
    found = sorted(entry_points(group=group), key=lambda point: (point.name, point.dist.name if point.dist else ""))
    return {point.name: point for point in reversed(found)}


class PluggableGroup(TyperGroup):
    """A group of commands in which commands of its own come first, then those of entry points."""

    plugged = GROUP

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in sorted(find(self.plugged)) if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; one of an entry point stays unimported until it is called."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        point = find(self.plugged).get(cmd_name)
        return None if point is None else LazyCommand(point)


class PluggableMemoryGroup(PluggableGroup):
    """The commands of `caisson memory`: those that call the gateway, and those that the memory service brings."""

    plugged = MEMORY_GROUP


class LazyCommand(TyperCommand):
    """Stands for an entry point: its line of help is read from the source, the rest comes with the call."""

    def __init__(self, point: EntryPoint) -> None:
        super().__init__(point.name, help=summary(point), rich_help_panel=_PANEL)
        self._point = point

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the real command and let it read its arguments."""
        return self._load().make_context(info_name, args, parent=parent, **extra)

    def _load(self) -> Any:
        try:
            function: Callable[..., Any] = self._point.load()
            app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            app.command(self.name)(function)
            return typer.main.get_command(app)
        except Exception as error:  # whatever a foreign module raises
            typer.echo(f"the command {self.name} ({self._point.value}) cannot be loaded: {error!r}", err=True)
            raise typer.Exit(1) from None


def summary(point: EntryPoint) -> str:
    """Return the first line of the function's docstring, read without importing its module."""
    try:
        spec = find_spec(point.module)
        tree = ast.parse(Path(spec.origin).read_text()) if spec and spec.origin else None
    except (ImportError, OSError, SyntaxError, ValueError):
        tree = None
    for node in tree.body if tree else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == point.attr:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return "cannot be loaded" if tree is None else ""
