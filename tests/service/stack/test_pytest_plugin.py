"""A user's suite gets a running plane by naming a fixture, in sync and async tests alike."""

import asyncio
import sys
from pathlib import Path

SUITE = """
import json
import urllib.request

ASKED = []

def call(caisson_stack):
    request = urllib.request.Request(
        caisson_stack.url + "/v1/exec",
        data=json.dumps({"command": "echo hi", "timeout_s": 20}).encode(),
        headers={
            "Authorization": f"Bearer {caisson_stack.platform_key}",
            "Content-Type": "application/json",
            "Caisson-Tenant": "acme",
            "Caisson-User": "u-1",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["stdout"]["text"]

def test_sync(caisson_stack):
    assert call(caisson_stack) == "hi\\n"
    ASKED.append(caisson_stack.url)

async def test_async(caisson_stack):
    assert call(caisson_stack) == "hi\\n"
    assert ASKED == [caisson_stack.url], "one plane for the whole session"
"""

INI = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = session
caisson_runners = 1
"""


async def test_a_suite_that_names_the_fixture_gets_a_plane(tmp_path: Path) -> None:
    (tmp_path / "test_product.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(INI)
    suite = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'temp'}"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(suite.communicate(), 110)
    assert suite.returncode == 0, said.decode()
    assert b"2 passed" in said
