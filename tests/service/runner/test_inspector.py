"""The reader of commands survives every command, and no command gets past it unread."""

import asyncio
from pathlib import Path
from time import monotonic

import psutil
import pytest

from caisson.runner.adapters.inspector import Inspector
from caisson.runner.domain.guards.decision import Allowed, Blocked, Trusted

TRUSTED = Trusted(
    tenant_id="acme", datasets=(), environment={"TENANT_ID": "acme", "API_HOST": "http://127.0.0.1:9191"}
)
LONGEST = 128 << 10

HOSTILE = [
    pytest.param("a|" * (LONGEST // 2), id="pipes, on which the parser takes all memory"),
    pytest.param("f() " * (LONGEST // 4), id="functions, on which the parser takes seconds"),
    pytest.param(" ".join(f"<<E{n}" for n in range(LONGEST // 8)) + "\n", id="heredocs, likewise"),
    pytest.param("\x01\x00" * (LONGEST // 2), id="control characters"),
    pytest.param("(" * LONGEST, id="parentheses"),
    pytest.param("$(" * (LONGEST // 2), id="substitutions"),
    pytest.param('"$(' * (LONGEST // 3), id="substitutions in quotes"),
    pytest.param("bash -c '" * (LONGEST // 9), id="shells in shells"),
    pytest.param("curl ?a=" * (LONGEST // 8), id="parameters"),
    pytest.param("\ud800" * 1000, id="lone surrogates"),
]


@pytest.mark.parametrize("command", HOSTILE)
async def test_a_hostile_command_is_read_in_bounded_time(inspector: Inspector, command: str) -> None:
    begun = monotonic()
    assert await inspector.inspect(command, TRUSTED) == Allowed()
    assert monotonic() - begun < 10


async def test_what_makes_the_parser_die_is_read_as_text(inspector: Inspector) -> None:
    command = "export TENANT_ID=globex; " + "a|" * (LONGEST // 2 - 20)
    decision = await inspector.inspect(command, TRUSTED)
    assert isinstance(decision, Blocked)
    assert decision.guard == "env_reassignment"
    assert len(decision.snippet) <= 200


async def test_brief_commands_do_not_wait_for_long_ones(inspector: Inspector) -> None:
    slow = asyncio.create_task(inspector.inspect("f() " * (LONGEST // 4), TRUSTED))
    assert await inspector.inspect("true", TRUSTED) == Allowed()
    assert not slow.done()
    await slow


async def test_a_caller_that_goes_away_leaves_no_answer_for_the_next_one(inspector: Inspector) -> None:
    gone = asyncio.create_task(inspector.inspect("export TENANT_ID=globex", TRUSTED))
    await asyncio.sleep(0)
    gone.cancel()
    assert await inspector.inspect("true", TRUSTED) == Allowed()


async def test_a_reader_holds_nothing_worth_stealing(inspector: Inspector) -> None:
    readers = [child for child in psutil.Process().children() if "caisson.runner.inspector" in child.cmdline()]
    assert len(readers) >= 2
    for reader in readers:
        assert reader.uids() == (65534, 65534, 65534)
        assert reader.gids() == (65534, 65534, 65534)
        assert not reader.net_connections()
        process = Path(f"/proc/{reader.pid}")
        assert {file.name for file in (process / "fd").iterdir()} == {"0", "1", "2"}
        assert (process / "environ").read_bytes() == b""
