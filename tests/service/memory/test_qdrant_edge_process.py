"""The engine's process as the service sees it: replaced when it ends or hangs, and gone when the service is."""

import asyncio
import shutil
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.qdrant_edge.process import EdgeProcess
from caisson.memory.domain.patience import answered_within
from tests.support.edge_process import engine_of, resident_bytes
from tests.support.eventually import eventually
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    process = await EdgeProcess.open(tmp_path, IDENTITY, rebuild=False, erase_within_s=3_600)
    yield process
    await process.close()


async def test_an_engine_that_dies_is_replaced_and_has_lost_nothing(engine: EdgeProcess, tmp_path: Path) -> None:
    index, tenant = EdgeIndex(engine, IDENTITY), a_tenant()
    await index.upsert([a_point(tenant, f"crate {n}", f"mem-{n}") for n in range(200)])
    waiting = [asyncio.create_task(index.count()) for _ in range(50)]
    await asyncio.sleep(0)
    with capture_logs() as logs:
        engine_of(tmp_path).send_signal(signal.SIGKILL)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(answer == 200 or isinstance(answer, Unavailable) for answer in ended)
        assert await eventually(lambda: _counted(index), within_s=20) == 200
    assert [(line["event"], line["exit_code"]) for line in logs] == [("embedded_index.ended", -signal.SIGKILL)]
    best = (await index.search(asking("crate 7"), a_filter(tenant))).found[0]
    assert best.memory_id == "mem-7"


async def test_an_engine_that_does_not_answer_is_replaced(engine: EdgeProcess, tmp_path: Path) -> None:
    hung = engine_of(tmp_path)
    hung.send_signal(signal.SIGSTOP)
    with pytest.raises(Unavailable, match="did not answer"):
        await engine.call("size", within_s=0.1)
    await eventually(lambda: _answers(engine), within_s=20)
    assert engine_of(tmp_path).pid != hung.pid


async def test_an_engine_holds_no_page_of_its_log_once_it_has_tidied_up(engine: EdgeProcess, tmp_path: Path) -> None:
    index, tenant = EdgeIndex(engine, IDENTITY), a_tenant()
    await index.upsert([a_point(tenant, f"crate {n}", f"mem-{n}") for n in range(500)])
    assert resident_bytes(tmp_path, "/wal/") > 0
    await index.optimize()
    assert resident_bytes(tmp_path, "/wal/") == 0
    assert await index.count() == 500


async def test_an_engine_over_a_few_points_holds_little_of_the_files_that_are_reserved(tmp_path: Path) -> None:
    for points in (0, 500, 0):
        index = await EdgeIndex.open(tmp_path, IDENTITY)
        await index.upsert([a_point(a_tenant(), f"crate {n}") for n in range(points)])
        await index.optimize()
        reserved = sum(file.stat().st_size for file in tmp_path.rglob("payload_*/**/page_*.dat"))
        assert resident_bytes(tmp_path, "/payload_") < 8 << 20 < reserved
        await index.close()


async def test_a_search_does_not_wait_for_an_engine_that_is_late_and_leaves_it_alone(
    engine: EdgeProcess, tmp_path: Path
) -> None:
    index, tenant, late = EdgeIndex(engine, IDENTITY), a_tenant(), engine_of(tmp_path)
    await index.upsert([a_point(tenant, "crate 7", "mem-7")])
    late.send_signal(signal.SIGSTOP)
    with pytest.raises(Unavailable, match=r"no answer in 0\.05 s"):
        await answered_within(0.05, index.search(asking("crate 7"), a_filter(tenant)))
    late.send_signal(signal.SIGCONT)
    found = await answered_within(20, index.search(asking("crate 7"), a_filter(tenant)))
    assert [candidate.memory_id for candidate in found.found] == ["mem-7"]
    assert engine_of(tmp_path).pid == late.pid


async def test_a_folder_that_was_removed_is_made_and_locked_again(engine: EdgeProcess, tmp_path: Path) -> None:
    ending = engine_of(tmp_path)
    await asyncio.to_thread(shutil.rmtree, tmp_path)
    ending.send_signal(signal.SIGKILL)
    assert await eventually(lambda: _emptied(engine), within_s=20)
    with pytest.raises(Misconfigured, match="is open in process"):
        await EdgeProcess.open(tmp_path, IDENTITY, rebuild=False, erase_within_s=3_600)


async def test_an_engine_knows_none_of_the_services_settings(engine: EdgeProcess, tmp_path: Path) -> None:
    assert engine_of(tmp_path).environ() == {}


async def test_an_engine_ends_with_the_service_that_is_killed(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.support.edge_writer", str(tmp_path), a_tenant())
    writer = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert writer.stdout is not None
    await writer.stdout.readline()
    [orphan] = psutil.Process(writer.pid).children()
    writer.kill()
    await writer.communicate()
    await eventually(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)


async def _answers(engine: EdgeProcess) -> bool:
    return await _counted(EdgeIndex(engine, IDENTITY)) is not None


async def _emptied(engine: EdgeProcess) -> bool:
    return await _counted(EdgeIndex(engine, IDENTITY)) == 0


async def _counted(index: EdgeIndex) -> int | None:
    try:
        return await index.count()
    except Unavailable:
        return None
