"""Every case that the folder of cases is about has at least one test, and every test there says whose row it is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases"
MEMORY = """
    M1 M2 M4 M5 M6 M7 M8 M9 M11 M12 M14 M15 M16 M17 M18 M19 M20 M22 M23 M24 M25 M27 M28 M29 M31 M33 M34
    M35 M36 M37 M38 M39 M40 M41 M42 M43 M44 M46 M47 M49 M50 M51 M52 M53 M54 M56 M57 M59
"""
_ROWS = re.compile(r"((?:[A-Z]\d+)(?:, [A-Z]\d+)*)\. ")


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each test."""
    for file in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{file.name}::{node.name}", ast.get_docstring(node) or ""


def rows(docstring: str) -> set[str]:
    """Return the rows that a docstring begins with."""
    found = _ROWS.match(docstring)
    return set(found.group(1).split(", ")) if found else set()


def test_every_test_of_a_case_begins_with_its_row() -> None:
    assert [name for name, docstring in docstrings(CASES) if not rows(docstring)] == []


def test_every_row_about_memory_has_a_test_and_no_test_has_another_row() -> None:
    tested = {row for _, docstring in docstrings(CASES / "memory") for row in rows(docstring)}
    assert tested == set(MEMORY.split())
