"""`make bench`: measure, print a table, write `bench/results/latest.json`. Exits 1 if a bar does not hold."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import Figure

RESULTS = Path(__file__).parent / "results" / "latest.json"
QUESTIONS = ("box", "proxy", "runs", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where the figures come from."""

    processor: str
    cores: int
    kernel: str
    python: str
    caisson: str


def main() -> int:
    """Ask the given questions, or all."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("questions", nargs="*", default=QUESTIONS, metavar="QUESTION", help=", ".join(QUESTIONS))
    arguments = parser.parse_args()
    console = Console()
    console.print(_describe(_machine()))
    figures = [figure.as_json() for figure in _ask(arguments.questions, console)]
    console.print(_table(figures))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    console.print(f"written to {RESULTS}")
    return 0 if all(figure["holds"] is not False for figure in figures) else 1


def _ask(questions: list[str], console: Console) -> Iterator[Figure]:
    for question in questions:
        module = importlib.import_module(f"bench.{question}")
        console.print(f"[bold]{question}[/]: {(module.__doc__ or '').strip()}\n")
        yield from module.run()


def _machine() -> Machine:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return Machine(
        processor=models[0].partition(": ")[2] if models else platform.machine(),
        cores=os.cpu_count() or 0,
        kernel=platform.release(),
        python=platform.python_version(),
        caisson=version("caisson-common"),
    )


def _describe(machine: Machine) -> str:
    return (
        f"{machine.cores} cores of {machine.processor}, Linux {machine.kernel}, Python {machine.python}, "
        f"Caisson {machine.caisson}. Shared machines are noisy: compare ratios of one run, not times of two.\n"
    )


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(title="Figures")
    for column in ("name", "value", "unit", "bar", "holds"):
        table.add_column(column, justify="right" if column in {"value", "bar"} else "left")
    marks = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}
    for figure in figures:
        bar = "" if figure["bar"] is None else f"{figure['wanted']} {figure['bar']:g}"
        table.add_row(figure["name"], f"{figure['value']:,.2f}", figure["unit"], bar, marks[figure["holds"]])
    return table


if __name__ == "__main__":
    sys.exit(main())
