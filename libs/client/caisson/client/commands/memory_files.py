"""Texts to remember, from arguments, files and stdin."""

import sys
from pathlib import Path

import typer


def read_text(given: str) -> str:
    """Return a text as it is given, or what stdin holds for `-`."""
    return sys.stdin.read().strip() if given == "-" else given


def read_lines(source: str) -> list[str]:
    """Return the lines of a file, or of stdin for `-`, without empty ones."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {source}: {error.__class__.__name__}", param_hint="FILE") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
