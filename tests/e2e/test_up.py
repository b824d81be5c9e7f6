"""`caisson up` from its first start to a killed supervisor, as an operator sees it."""

import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.eventually import eventually

ROOT = Path(__file__).parents[2]


class Up:
    """One `caisson up` on a folder."""

    def __init__(self, process: Process, ready_file: Path) -> None:
        self.process = process
        self._ready_file = ready_file

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._ready_file.read_text())
        return found

    def processes(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    async def ends_with(self) -> tuple[int, str]:
        _, said = await asyncio.wait_for(self.process.communicate(), 60)
        assert self.process.returncode is not None
        return self.process.returncode, said.decode()


@asynccontextmanager
async def up(folder: Path, *options: str, ready: bool = True) -> AsyncIterator[Up]:
    ready_file = folder / "ready.json"
    ready_file.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "caisson.stack", f"--data={folder / 'data'}", f"--ready-json={ready_file}", *options),
        cwd=ROOT,
        stderr=PIPE,
    )
    try:
        if ready:
            await eventually(lambda: ready_file.exists() or process.returncode is not None, within_s=90)
            assert process.returncode is None, (await process.communicate())[1].decode()
        yield Up(process, ready_file)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


def headers(told: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {told['platform_key']}", "Caisson-Tenant": "acme", "Caisson-User": "u-1"}


async def execute(told: dict[str, Any], command: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=told["url"], headers=headers(told), trust_env=False, timeout=60) as client:
        answer = await client.post("/v1/exec", json={"command": command, "timeout_s": 20})
    assert answer.is_success, answer.text
    step: dict[str, Any] = answer.json()
    return step


def living(processes: list[psutil.Process]) -> list[str]:
    found = []
    for process in processes:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except psutil.NoSuchProcess:
            continue
    return found


async def test_from_the_first_start_to_a_killed_supervisor(tmp_path: Path) -> None:
    async with up(tmp_path, "--runners=2") as first:
        told = first.told
        assert {name: len(pids) for name, pids in told["pids"].items()} == {
            "postgres": 1,
            "nats": 1,
            "gateway": 1,
            "proxy": 1,
            "memory": 1,
            "runner": 2,
        }
        for url in told["metrics_urls"].values():
            assert "caisson_" in httpx.get(url, trust_env=False).text
        step = await execute(told, "echo kept")
        assert step["stdout"]["text"] == "kept\n"

        async with up(tmp_path, ready=False) as second:
            code, said = await second.ends_with()
            assert code == 1
            assert f"another stack (process {first.process.pid})" in said

        processes = first.processes()
        first.process.send_signal(signal.SIGINT)
        code, said = await first.ends_with()
        assert (code, living(processes)) == (0, [])
        assert "Traceback" not in said

    async with up(tmp_path) as again:
        assert again.told["platform_key"] == told["platform_key"]
        run = httpx.get(f"{again.told['url']}/v1/runs/{step['run_id']}", headers=headers(told), trust_env=False)
        assert run.json()["status"] == "succeeded", "the ledger goes on where it stopped"
        processes = again.processes()
        again.process.kill()
        await again.process.communicate()
        await eventually(lambda: living(processes) == [], within_s=10)

    async with up(tmp_path) as third:
        assert (await execute(third.told, "echo after all"))["stdout"]["text"] == "after all\n"


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with up(tmp_path, f"--port={port}", ready=False) as refused:
            code, said = await refused.ends_with()
    assert (code, f"port {port}" in said) == (1, True)


async def test_upstreams_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    async with up(tmp_path, "--upstreams=/nowhere/upstreams.yaml", ready=False) as refused:
        code, said = await refused.ends_with()
    assert (code, "/nowhere/upstreams.yaml" in said) == (1, True)


@pytest.mark.parametrize("option", ["--runners=0", "--port=70000"])
async def test_an_option_out_of_range_is_refused(tmp_path: Path, option: str) -> None:
    async with up(tmp_path, option, ready=False) as refused:
        code, said = await refused.ends_with()
    assert (code, option.split("=", maxsplit=1)[0] in said) == (2, True)
