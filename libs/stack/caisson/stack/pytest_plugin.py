"""pytest fixtures for suites that test a product against Caisson: installed is enabled, nothing runs until asked for.

The plane runs as a process of its own, so sync and async tests use it alike.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

_READY_WITHIN_S = 120
_STOP_WITHIN_S = 60
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStack:
    """A plane that is ready: `url` and `platform_key` are all that a client needs."""

    url: str
    platform_key: str
    proxy_url: str
    metrics_urls: dict[str, str]
    pids: dict[str, list[int]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings of the plane."""
    parser.addini("caisson_runners", "how many runner processes the caisson_stack fixture starts", default="1")
    parser.addini("caisson_upstreams", "the file that declares upstreams for the caisson_stack fixture", default="")


@pytest.fixture(scope="session")
def caisson_stack(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[RunningStack]:
    """Run a whole plane for the test session, in a folder of its own."""
    folder = tmp_path_factory.mktemp("caisson")
    ready, log = folder / "ready.json", folder / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            _command(folder / "data", ready, pytestconfig), stdout=output, stderr=output, start_new_session=True
        )
    try:
        _await_ready(process, ready, log)
        yield RunningStack(**json.loads(ready.read_text()))
    finally:
        process.terminate()
        process.wait(_STOP_WITHIN_S)


def _command(data: Path, ready: Path, config: pytest.Config) -> list[str]:
    """Return the command; should pytest be killed, the kernel asks the plane to end."""
    command = ["setpriv", "--pdeathsig=TERM", "--", sys.executable, "-m", "caisson.stack"]
    command += [f"--data={data}", f"--ready-json={ready}", f"--runners={config.getini('caisson_runners')}"]
    if upstreams := config.getini("caisson_upstreams"):
        command.append(f"--upstreams={config.rootpath / upstreams}")
    return command


def _await_ready(process: subprocess.Popen[bytes], ready: Path, log: Path) -> None:
    deadline = monotonic() + _READY_WITHIN_S
    while not ready.exists():
        if process.poll() is not None or monotonic() > deadline:
            pytest.fail(f"the plane did not start:\n{log.read_text()}", pytrace=False)
        sleep(_POLL_S)
