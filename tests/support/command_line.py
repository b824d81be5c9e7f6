"""The `caisson` command in this process: arguments in, streams and exit code out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from caisson.client.cli import app
from tests.support.fake_api import PLATFORM_KEY, FakeApi

UNSET: dict[str, str | None] = dict.fromkeys(
    ("CAISSON_URL", "CAISSON_API_KEY", "CAISSON_TENANT", "CAISSON_USER", "FORCE_COLOR")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command wrote, and its exit code."""

    code: int
    stdout: str
    stderr: str
    stdout_bytes: bytes

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def caisson(
    *arguments: str, api: FakeApi | None = None, env: Mapping[str, str] | None = None, stdin: str | None = None
) -> Ended:
    """Run the command, against `api` with the platform key where one is given."""
    known = {} if api is None else {"CAISSON_URL": api.url, "CAISSON_API_KEY": PLATFORM_KEY}
    environment = {**UNSET, **known, "COLUMNS": "120", "TERMINAL_WIDTH": "120", **(env or {})}
    result = CliRunner().invoke(
        app, list(arguments), input=stdin, env=environment, prog_name="caisson", catch_exceptions=False
    )
    return Ended(code=result.exit_code, stdout=result.stdout, stderr=result.stderr, stdout_bytes=result.stdout_bytes)
