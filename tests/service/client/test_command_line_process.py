"""The `caisson` command as a process: signals, pipes, terminals, and commands of other distributions."""

import os
import pty
import re
import signal
import subprocess
import sys
from asyncio import to_thread
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from caisson.client import exit_codes
from tests.support.eventually import eventually
from tests.support.fake_api import PLATFORM_KEY, FakeApi
from tests.support.played_runs import Behaviour

COMMAND = [sys.executable, "-c", "from caisson.client.cli import main; main()"]


def environment(api: FakeApi | None = None, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAISSON_")}
    known = {} if api is None else {"CAISSON_URL": api.url, "CAISSON_API_KEY": PLATFORM_KEY}
    return kept | known | extra


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], env=env, capture_output=True, text=True, timeout=30, check=False)


@contextmanager
def started(*arguments: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, *arguments], env=env, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_ctrl_c_cancels_the_run_and_ends_as_cancelled(api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True, stdout=b"so far\n")
    with started("exec", "sleep", env=environment(api)) as process:
        await eventually(lambda: api.runs and next(iter(api.runs.values())).watched.is_set(), within_s=20)
        process.send_signal(signal.SIGINT)
        stdout, stderr = await to_thread(process.communicate, timeout=20)
    assert next(iter(api.runs.values())).document["status"] == "cancelled"
    assert (process.returncode, stdout) == (exit_codes.CANCELLED, b"so far\n")
    assert b"cancelling run_" in stderr


async def test_a_second_ctrl_c_leaves_the_run(api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True, deaf=True)
    with started("exec", "sleep", env=environment(api)) as process:
        await eventually(lambda: api.runs and next(iter(api.runs.values())).watched.is_set(), within_s=20)
        process.send_signal(signal.SIGINT)
        await eventually(lambda: [item for item in api.requests if item.path.endswith("/cancel")])
        process.send_signal(signal.SIGINT)
        _, stderr = await to_thread(process.communicate, timeout=20)
    assert process.returncode == exit_codes.CANCELLED
    assert b"see: caisson events run_" in stderr


async def test_a_reader_that_goes_away_cancels_the_run(api: FakeApi) -> None:
    pieces = tuple(("stdout", 10_000 * number, "x" * 10_000) for number in range(20))
    api.behaviours["yes"] = Behaviour(watched=True, live=pieces, holds=True)
    with started("exec", "yes", env=environment(api)) as process:
        assert process.stdout is not None
        process.stdout.close()
        await to_thread(process.wait, timeout=20)
    await eventually(lambda: next(iter(api.runs.values())).final)
    assert api.runs.popitem()[1].document["status"] == "cancelled"


async def test_a_terminal_gets_colours_and_no_foreign_control_sequences(api: FakeApi) -> None:
    api.behaviours["look"] = Behaviour(stdout=b"\x1b[2Jgreen\n", stderr=b"")
    controller, terminal = pty.openpty()
    arguments = [*COMMAND, "run", "-"]
    env = environment(api, TERM="xterm-256color")
    with subprocess.Popen(arguments, env=env, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        assert process.stdin is not None
        process.stdin.write(b'{"steps": [{"bash": {"command": "look"}}]}')
        process.stdin.close()
        shown = await to_thread(_read_all, controller)
    os.close(controller)
    assert "␛[2Jgreen" in shown
    assert "\x1b[2J" not in shown
    assert re.search(r"\x1b\[[0-9;]*32m✓", shown)


def _read_all(controller: int) -> str:
    data = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:  # Linux tells the end of a pty so
            return data.decode()
        if not piece:
            return data.decode()
        data += piece


@pytest.fixture
def extensions(tmp_path: Path) -> dict[str, str]:
    """An environment with a distribution that adds two commands, one of them broken."""
    described = tmp_path / "extra-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[caisson.commands]\nsurface = extra:surface\nsink = broken:sink\n")
    (tmp_path / "extra.py").write_text(
        'import sys\n\nprint("extra was imported", file=sys.stderr)\n\n\n'
        'def surface(*, depth: int = 1) -> None:\n    """Come up again."""\n    print(f"up from {depth}")\n'
    )
    (tmp_path / "broken.py").write_text('import nothing_of_this_name\n\n\ndef sink() -> None:\n    """Go down."""\n')
    return environment(PYTHONPATH=str(tmp_path))


def test_other_distributions_add_commands_and_a_broken_one_breaks_no_other(extensions: dict[str, str]) -> None:
    shown = run("--help", env=extensions)
    assert re.search(r"surface +Come up again\.", shown.stdout)
    assert re.search(r"sink +Go down\.", shown.stdout)
    assert "imported" not in shown.stderr
    assert run("surface", "--depth", "3", env=extensions).stdout == "up from 3\n"
    assert "--depth" in run("surface", "--help", env=extensions).stdout
    broken = run("sink", env=extensions)
    assert (broken.returncode, "nothing_of_this_name" in broken.stderr) == (1, True)
    assert "extra was imported" not in broken.stderr
    assert "Traceback" not in broken.stderr


def test_help_needs_none_of_the_heavy_modules() -> None:
    program = (
        "import sys\nfrom caisson.client import cli\n"
        "print(sorted({'httpx', 'pydantic', 'yaml', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[]\n"
