"""What holds for every command of `caisson`."""

from typing import Any

import pytest
import typer

from caisson.client.cli import app


def leaves(group: Any, *path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = leaves(command, *path, name) if hasattr(command, "commands") else {" ".join((*path, name)): command}
        found |= inner
    return found


COMMANDS = leaves(typer.main.get_command(app))


def test_the_commands_are_these() -> None:
    assert sorted(COMMANDS) == [
        "cancel",
        "credentials delete",
        "credentials set",
        "doctor",
        "events",
        "exec",
        "keys create",
        "keys list",
        "keys revoke",
        "memory add",
        "memory consolidate",
        "memory distil",
        "memory edit",
        "memory erase-user",
        "memory export",
        "memory forget",
        "memory history",
        "memory list",
        "memory receipt",
        "memory reconcile",
        "memory search",
        "memory show",
        "memory usage",
        "run",
        "runs",
        "security-events",
        "sessions create",
        "sessions delete",
        "sessions list",
        "sessions show",
        "tenants set",
        "tenants show",
        "version",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself_and_speaks_json(name: str) -> None:
    command = COMMANDS[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options
    assert command.help
    assert all(getattr(parameter, "help", None) for parameter in command.params if parameter.name != "context")
