"""What is forgotten leaves the files of the embedded index within a bounded time: payload, vector and log."""

import json
import os
import resource
import shutil
import signal
import struct
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from caisson.common.errors import Unavailable
from caisson.common.ids import TenantId
from caisson.memory.adapters.embedder_stamp import stamp
from caisson.memory.adapters.qdrant_edge.engine import Engine
from caisson.memory.adapters.qdrant_edge.folder import ShardFolder
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.restrictions import chunks_of
from caisson.memory.domain.indexing import Point
from tests.support.edge_process import engine_of
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking

GONE = "Marta buries the gold under the elm"
KEPT = "Oskar keeps bees"


async def test_a_deleted_memory_is_in_no_file_after_a_copy(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=0)
    gone, kept = a_point(tenant, GONE), a_point(tenant, KEPT)
    await index.upsert([gone, kept])
    await index.delete_memories(tenant, [gone.memory_id])
    assert len(_left(tmp_path, gone)) == 3, "what is looked for is what would be left"
    await index.optimize()
    assert not _left(tmp_path, gone)
    assert [found.memory_id for found in (await index.search(asking(KEPT), a_filter(tenant))).found] == [
        kept.memory_id
    ]
    await index.close()
    assert not _left(tmp_path, gone)


async def test_an_earlier_version_is_in_no_file_after_a_copy(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=0)
    earlier = a_point(tenant, GONE, "mem-1")
    await index.upsert([earlier])
    await index.upsert([a_point(tenant, KEPT, "mem-1", version=2)])
    assert "vector, logged" in _left(tmp_path, earlier), "what is looked for is what would be left"
    await index.optimize()
    assert set(_left(tmp_path, earlier)) == {"id"}, "of the later version"
    await index.close()


@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_what_was_due_is_still_due_after_a_restart(tmp_path: Path, end: str) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=3_600)
    gone = a_point(tenant, GONE)
    await index.upsert([gone, a_point(tenant, KEPT)])
    await index.delete_memories(tenant, [gone.memory_id])
    await index.optimize()
    assert _left(tmp_path, gone), "an hour has not passed"
    if end == "killed":
        engine_of(tmp_path).send_signal(signal.SIGKILL)
    await index.close()
    index = await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=0)
    await index.optimize()
    assert not _left(tmp_path, gone)
    assert await index.count() == 1
    await index.close()


TIMES = [
    (3_599.0, 3, "the time is not over"),
    (3_600.0, 0, "it is over"),
    (-1.0, 0, "the clock went back: nobody knows how old it is"),
]


@pytest.mark.parametrize(("later_s", "left", "why"), TIMES, ids=[row[2] for row in TIMES])
def test_the_oldest_deletion_decides_when(tmp_path: Path, later_s: float, left: int, why: str) -> None:
    now, tenant = 1_000_000.0, a_tenant()
    folder = ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600, clock=lambda: now)
    first, second = a_point(tenant, GONE), a_point(tenant, KEPT)
    engine.write([first, second])
    _delete(engine, tenant, [first.memory_id])
    now += later_s
    _delete(engine, tenant, [second.memory_id])
    engine.optimize()
    assert [len(_left(tmp_path, point)) for point in (first, second)] == [left, left], why
    engine.optimize()
    engine.close()


def test_a_deletion_that_could_not_be_noted_is_noted_when_it_is_asked_for_again(tmp_path: Path) -> None:
    tenant, folder = a_tenant(), ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600, clock=lambda: 1_000.0)
    gone = a_point(tenant, GONE)
    engine.write([gone])
    in_the_way = tmp_path / "store.json.new"
    in_the_way.mkdir()
    with pytest.raises(OSError, match="directory"):
        _delete(engine, tenant, [gone.memory_id])
    assert engine.size() == 1
    in_the_way.rmdir()
    _delete(engine, tenant, [gone.memory_id])
    known = json.loads((tmp_path / "store.json").read_text())
    assert (known["stale"], known["stale_since"]) == (1, 1_000.0)
    engine.close()


def test_a_copy_that_the_disk_has_no_room_for_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, folder = a_tenant(), ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=0)
    gone = a_point(tenant, GONE)
    engine.write([gone, a_point(tenant, KEPT)])
    _delete(engine, tenant, [gone.memory_id])
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
        with pytest.raises(Unavailable, match="1000000 are free"):
            engine.optimize()
    assert (engine.size(), len(list(tmp_path.glob("shard-*")))) == (1, 1)
    engine.optimize()
    assert not _left(tmp_path, gone)
    engine.close()


def test_a_copy_that_cannot_be_begun_leaves_no_files(tmp_path: Path) -> None:
    tenant, folder = a_tenant(), ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=0)
    gone = a_point(tenant, GONE)
    engine.write([gone])
    _delete(engine, tenant, [gone.memory_id])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(Exception, match="too large"):
            engine.optimize()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(list(tmp_path.glob("shard-*"))) == 1
    engine.optimize()
    assert not _left(tmp_path, gone)
    engine.close()


def _delete(engine: Engine, tenant: TenantId, memory_ids: Sequence[str]) -> None:
    for restriction in chunks_of(tenant, memory_ids):
        engine.remove(restriction)


def _left(folder: Path, point: Point) -> list[str]:
    """What the folder's files still hold of a point: in half precision as it is stored, in CBOR as it is logged."""
    vector = np.asarray(point.dense, dtype=np.float32)
    traces = {
        "vector, stored": vector.astype(np.float16).tobytes(),
        "vector, logged": b"".join(struct.pack(">cf", b"\xfa", component) for component in vector),
        "id": point.memory_id.encode(),
    }
    files = b"\0".join(_written(file) for file in folder.rglob("*") if file.is_file())
    return [name for name, trace in traces.items() if trace in files]


def _written(file: Path) -> bytes:
    """A file without its holes: the engine reserves 32 MiB at a time and writes to little of it."""
    data, end = b"", 0
    with file.open("rb") as opened:
        while True:
            try:
                begin = os.lseek(opened.fileno(), end, os.SEEK_DATA)
            except OSError:
                return data
            end = os.lseek(opened.fileno(), begin, os.SEEK_HOLE)
            data += os.pread(opened.fileno(), end - begin, begin)
