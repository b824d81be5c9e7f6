"""`python -m caisson.runner`, as a supervisor sees it."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from caisson.common.leases import Release, StartStep
from caisson.common.outcome import Exited
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually
from tests.support.scripted_ledger import ScriptedLedger, grant

_CHANNEL_KEY = "a-key-that-must-not-be-logged"


@asynccontextmanager
async def worker(nats: EmbeddedNats, folder: Path, **told: str) -> AsyncIterator[tuple[Process, str]]:
    """Start a process and wait until it is ready; yield it with the address of its admin port."""
    told_file = folder / "ports.json"
    environment = {
        "PATH": os.environ["PATH"],
        "RUNNER_NATS_URL": nats.url,
        "RUNNER_NATS_PASSWORD": nats.passwords["runner"],
        "RUNNER_CHANNEL_KEY": _CHANNEL_KEY,
        "RUNNER_WORKSPACES_DIR": str(folder / "workspaces"),
        "RUNNER_WARM_NAMESPACES": "1",
        "RUNNER_ADMIN_PORT_FILE": str(told_file),
        **told,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "caisson.runner", env=environment, stderr=PIPE
    )
    try:
        await eventually(lambda: told_file.exists() or process.returncode is not None, within_s=20)
        assert process.returncode is None, (await process.communicate())[1].decode()
        yield process, json.loads(told_file.read_text())["admin"]
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ready(address: str) -> bool:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{address}/readyz")).status_code == 200


async def test_a_worker_runs_commands_tells_its_metrics_and_ends_in_order(
    nats: EmbeddedNats, ledger: ScriptedLedger, tmp_path: Path
) -> None:
    async with worker(nats, tmp_path) as (process, address):
        await eventually(lambda: ready(address), within_s=20)
        run = grant("echo $TENANT_ID")
        ledger.queue.append(run)
        await ledger.ring()
        await eventually(lambda: ledger.ended(run))
        assert ledger.outcomes(run) == [Exited(exit_code=0)]
        assert ledger.finished[run.steps[0].step_id].stdout.text == "acme\n"
        async with httpx.AsyncClient(trust_env=False) as client:
            metrics = (await client.get(f"{address}/metrics")).text
        assert 'caisson_runner_isolation_info{isolation="tenant-uid"} 1.0' in metrics
        assert 'caisson_runner_steps_total{outcome="exited"} 1.0' in metrics
        assert "caisson_runner_free_slots 8.0" in metrics
        assert "caisson_runner_step_seconds_count 1.0" in metrics
        process.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 0
        assert _CHANNEL_KEY.encode() not in said
        assert nats.passwords["runner"].encode() not in said


async def test_a_worker_told_to_end_kills_and_gives_back_what_does_not_end_in_time(
    nats: EmbeddedNats, ledger: ScriptedLedger, tmp_path: Path
) -> None:
    run = grant("sleep 100")
    ledger.queue.append(run)
    async with worker(nats, tmp_path, RUNNER_DRAIN_S="0.2") as (process, _):
        await eventually(lambda: ledger.asked_for(StartStep, run.run_id), within_s=20)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 0
    assert len(ledger.asked_for(Release, run.run_id)) == 1
    assert not ledger.ended(run)
