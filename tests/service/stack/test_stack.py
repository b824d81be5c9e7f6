"""The stack keeps its processes alive, controls them, and lets none outlive it. Services are stand-ins here."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest

from caisson.stack.children import StackError
from caisson.stack.services import Overrides
from caisson.stack.stack import Stack
from tests.support import stand_in
from tests.support.eventually import eventually


def make_stack(data: Path, *, runners: int = 1, settings: Overrides | None = None) -> Stack:
    return Stack(data, runners=runners, settings=settings, programs=stand_in.PROGRAMS)


async def environment_of(stack: Stack, name: str) -> dict[str, str]:
    """Ask a stand-in for the environment it was given."""
    async with httpx.AsyncClient(trust_env=False) as client:
        answer: dict[str, str] = (await client.get(stack.metrics_urls[name])).json()
    return answer


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    settings = {"gateway": {"GATEWAY_LEASE_S": "5"}}
    async with make_stack(tmp_path_factory.mktemp("stack"), runners=2, settings=settings) as stack:
        yield stack


async def test_a_started_stack_says_how_to_reach_it(stack: Stack) -> None:
    told = stack.describe()
    assert told["platform_key"] == "ck_stand_in"
    assert set(told["metrics_urls"]) == {"gateway", "memory", "proxy", "runner-1", "runner-2"}
    assert {name: len(pids) for name, pids in told["pids"].items()} == {
        "postgres": 1,
        "nats": 1,
        "gateway": 1,
        "proxy": 1,
        "memory": 1,
        "runner": 2,
    }
    assert json.loads(stack.folder.client_file.read_text()) == {
        "url": stack.url,
        "api_key": "ck_stand_in",
        "proxy_admin_url": stack.services("proxy")[0].addresses["admin"],
    }


async def test_secrets_are_readable_by_their_owner_alone(stack: Stack) -> None:
    for name in ("secrets.json", "client.json", "platform-key"):
        assert (stack.folder.path / name).stat().st_mode & 0o077 == 0, name
    for name in ("logs", "ports", "postgres/data", "nats/store", "memory", "secrets"):
        assert (stack.folder.path / name).stat().st_mode & 0o077 == 0, name


async def test_services_get_the_settings_of_a_deployment_and_the_overrides(stack: Stack) -> None:
    gateway = await environment_of(stack, "gateway")
    assert gateway["GATEWAY_LEASE_S"] == "5"
    assert gateway["GATEWAY_DATABASE_URL"].startswith("postgresql://gateway:")
    connection = await asyncpg.connect(gateway["GATEWAY_DATABASE_URL"])
    await connection.close()
    memory = await environment_of(stack, "memory")
    assert memory["MEMORY_DATABASE_URL"] == gateway["GATEWAY_DATABASE_URL"]
    assert Path(memory["MEMORY_INDEX_DIR"]).parent == stack.folder.path / "memory"
    proxy, runner = await environment_of(stack, "proxy"), await environment_of(stack, "runner-2")
    assert runner["RUNNER_NAME"] == "runner-2"
    assert runner["RUNNER_PROXY_PORT"] == stack.proxy_url.rsplit(":", 1)[1]
    assert runner["RUNNER_CHANNEL_KEY"] == proxy["PROXY_CHANNEL_KEY"]


async def test_a_runner_is_told_no_secret_of_the_others(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "of the caller")
    await stack.restart("runner")
    keyring = stack.folder.keyring()
    told = json.dumps(await environment_of(stack, "runner-1"))
    for secret in (keyring.postgres_password, keyring.proxy_private_key, keyring.nats_passwords["gateway"]):
        assert secret not in told
    assert "of the caller" not in told


@pytest.mark.parametrize("name", ["gateway", "memory", "proxy", "runner", "nats", "postgres"])
async def test_a_killed_process_comes_back_at_its_address(stack: Stack, name: str) -> None:
    before, addresses, changes = stack.pids(name)[0], (stack.url, stack.proxy_url), []
    stack.on_change = lambda: changes.append(stack.describe())
    await stack.kill(name)
    await stack.ready()
    assert stack.pids(name)[0] != before
    assert (stack.url, stack.proxy_url) == addresses
    assert changes[-1]["pids"][name] == stack.pids(name), "whoever watches is told of the new process"


async def test_a_stopped_service_stays_away_until_it_is_started(stack: Stack) -> None:
    url = stack.url
    await stack.stop_service("gateway")
    assert stack.pids("gateway") == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/readyz", trust_env=False)
    await stack.start_service("gateway")
    assert httpx.get(f"{url}/readyz", trust_env=False).is_success


async def test_a_wiped_nats_is_empty_and_at_its_address(stack: Stack) -> None:
    marker = stack.folder.nats / "store" / "marker"
    marker.touch()
    before = (await environment_of(stack, "gateway"))["GATEWAY_NATS_URL"]
    await stack.wipe_nats()
    await stack.restart("gateway")
    assert not marker.exists()
    assert (await environment_of(stack, "gateway"))["GATEWAY_NATS_URL"] == before


async def test_replicas_can_be_added(stack: Stack) -> None:
    count = len(stack.pids("runner"))
    await stack.add_runner()
    assert len(stack.pids("runner")) == count + 1
    second = await stack.add_gateway()
    assert second != stack.url
    assert httpx.get(f"{second}/readyz", trust_env=False).is_success


async def test_a_folder_serves_one_stack_at_a_time(stack: Stack) -> None:
    with pytest.raises(StackError, match=r"another stack \(process \d+\) is running"):
        await make_stack(stack.folder.path).start()


async def test_a_stack_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with make_stack(tmp_path) as first:
        url = (await environment_of(first, "gateway"))["GATEWAY_DATABASE_URL"]
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('here')")
        await connection.close()
        processes = [psutil.Process(pid) for pids in first.describe()["pids"].values() for pid in pids]
    assert not any(process.is_running() for process in processes)
    assert first.folder.log("runner-1").read_text().endswith("drained\n"), "it was asked, not killed"
    async with make_stack(tmp_path) as second:
        assert (await environment_of(second, "gateway"))["GATEWAY_DATABASE_URL"] == url
        connection = await asyncpg.connect(url)
        assert await connection.fetchval("SELECT word FROM kept") == "here"
        await connection.close()


async def test_a_service_that_cannot_start_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, settings={"proxy": {"PROXY_STAND_IN_FAILS": "1"}})
    with pytest.raises(StackError, match=r"proxy ended with 1 .*\n.*told to fail"):
        await stack.start()
    assert all(stack.pids(name) == [] for name in ("postgres", "nats", "memory", "gateway", "proxy", "runner"))
    left: list[Any] = [p for p in psutil.Process().children(recursive=True) if str(tmp_path) in " ".join(p.cmdline())]
    assert left == []


async def test_an_orderly_end_that_nobody_asked_for_is_a_death_as_well(tmp_path: Path) -> None:
    async with make_stack(tmp_path) as stack:
        first = psutil.Process(stack.pids("runner")[0])
        await stack.kill("runner", number=signal.SIGTERM)
        await eventually(lambda: not first.is_running())
        await stack.ready()
        assert stack.pids("runner")[0] != first.pid


async def test_no_process_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    supervisor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.supervisor_program", str(tmp_path)),
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
    )
    assert supervisor.stdout is not None
    pids = json.loads(await supervisor.stdout.readline())["pids"]
    processes = [psutil.Process(pid) for found in pids.values() for pid in found]
    processes += [child for process in processes for child in process.children(recursive=True)]
    assert len(processes) > len(pids), "PostgreSQL has children of its own"
    supervisor.kill()
    await supervisor.wait()
    await eventually(lambda: not any(is_alive(process) for process in processes))
    async with make_stack(tmp_path) as again:
        assert again.pids("postgres"), "the folder is free and its servers recover"
