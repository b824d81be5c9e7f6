"""A program with an environment of its own is locked to what our packages need today."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "bench").glob("*.py.lock"))


def test_there_are_such_programs() -> None:
    assert LOCKS


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_its_lock_knows_what_our_packages_need(lock: Path) -> None:
    """Else uv refuses to run it; `uv lock --script` on the program mends that."""
    for package in tomllib.loads(lock.read_text())["package"]:
        if folder := package.get("source", {}).get("editable"):
            project = tomllib.loads((lock.parent / folder / "pyproject.toml").read_text())["project"]
            locked = {_requirement(one) for one in package["metadata"]["requires-dist"]}
            assert locked == {need.replace(" ", "") for need in project["dependencies"]}, package["name"]


def _requirement(locked: dict[str, Any]) -> str:
    extras = f"[{','.join(locked['extras'])}]" if "extras" in locked else ""
    return f"{locked['name']}{extras}{locked.get('specifier', '')}"
