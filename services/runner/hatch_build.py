"""Builds the C program of the sandbox when the package is installed, editable or as a wheel."""

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "box/caisson-box.c"
_PROGRAM = "caisson/runner/bin/caisson-box"
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")


class BoxProgram(BuildHookInterface[Any]):
    """Compiles `caisson-box`: with musl, whose programs start 0.3 ms sooner, else with glibc."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's signature
        """Compile before the files are collected."""
        compiler = shutil.which("musl-gcc") or shutil.which("cc")
        if compiler is None:
            raise RuntimeError("caisson-runner needs a C compiler: install musl-tools, or gcc and libc6-dev")
        root = Path(self.root)
        (root / _PROGRAM).parent.mkdir(exist_ok=True)
        subprocess.run([compiler, *_FLAGS, "-o", str(root / _PROGRAM), str(root / _SOURCE)], check=True)  # noqa: S603
        build_data["artifacts"].append(_PROGRAM)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
