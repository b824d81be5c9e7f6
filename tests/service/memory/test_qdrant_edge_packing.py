"""Packing the embedded index: when it happens, that nothing is lost by it, and that searches stay exact."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import qdrant_edge as edge
from structlog.testing import capture_logs

from caisson.common.errors import Unavailable
from caisson.common.ids import TenantId
from caisson.memory import app
from caisson.memory.adapters.embedder_stamp import stamp
from caisson.memory.adapters.point_payload import KEYWORDS
from caisson.memory.adapters.qdrant_edge import folder as folder_module
from caisson.memory.adapters.qdrant_edge import packing, requests
from caisson.memory.adapters.qdrant_edge.engine import Engine
from caisson.memory.adapters.qdrant_edge.folder import ShardFolder, Stored
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.restrictions import chunks_of
from caisson.memory.domain.indexing import Point
from tests.support.edge_process import resident_bytes
from tests.support.eventually import eventually
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking, vector_of

MANY = 5_000
"""Loose points that make an index due to be packed."""


def many(tenant: TenantId, count: int, begin: int = 0) -> list[Point]:
    return [a_point(tenant, f"crate {n} of row {n % 7}", f"mem-{n}") for n in range(begin, begin + count)]


async def test_what_is_packed_is_searched_exactly_and_as_before(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY)
    points = many(tenant, MANY)
    await index.upsert(points)
    queries = [f"crate {n} of row {n % 7}" for n in range(0, MANY, 500)]
    loose = [await _scores(index, tenant, query) for query in queries]
    await index.optimize()
    assert _is_packed(tmp_path)
    await index.optimize()
    assert resident_bytes(tmp_path, "point_to_values.bin") > 0, "what every search reads stays"
    vectors = np.array([point.dense for point in points])
    for query, (dense, lexical) in zip(queries, loose, strict=True):
        likeness, terms = await _scores(index, tenant, query)
        assert likeness == pytest.approx(dense, abs=1e-3)
        assert terms == pytest.approx(lexical, rel=1e-5)
        exact = np.sort(vectors @ np.array(vector_of(query)))[::-1][: len(dense)]
        assert likeness == pytest.approx(exact.tolist(), abs=1e-3)
    await index.close()


async def test_it_is_packed_once_much_is_loose_and_knows_how_much_after_a_restart(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY)
    await index.upsert(many(tenant, MANY - 1))
    await index.optimize()
    assert not _is_packed(tmp_path)
    await index.close()
    index = await EdgeIndex.open(tmp_path, IDENTITY)
    await index.upsert(many(tenant, 1, MANY))
    await index.optimize()
    assert _is_packed(tmp_path)
    packed = _in_force(tmp_path)
    await index.upsert(many(tenant, 100, 2 * MANY))
    await index.optimize()
    assert _in_force(tmp_path) == packed, "a little is not worth a copy"
    assert await index.count() == MANY + 100
    await index.close()


def test_what_changes_while_a_shard_is_packed_is_in_it_and_its_deletions_are_timed(tmp_path: Path) -> None:
    tenant, now = a_tenant(), 1_000.0
    gone, changed, late = (a_point(tenant, f"late {n}", f"late-{n}") for n in range(3))

    def meanwhile() -> None:
        nonlocal now
        _delete(engine, tenant, [gone.memory_id])
        now += 60
        engine.write([late])
        engine.write([a_point(tenant, "changed", changed.memory_id, version=2)])

    folder = Meanwhile(tmp_path, meanwhile)
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600, clock=lambda: now)
    engine.write([*many(tenant, MANY), gone, changed])
    assert engine.optimize()
    assert _is_packed(tmp_path)
    held = set(engine.stored(None, None, 2 * MANY)[0])
    assert held == {(tenant, f"mem-{n}", 1) for n in range(MANY)} | {
        (tenant, "late-1", 2),
        (tenant, "late-2", 1),
    }
    known = json.loads((tmp_path / "store.json").read_text())
    assert (known["stale"], known["stale_since"]) == (2, 1_000.0), "since it was asked for"
    engine.close()


async def test_a_deleted_memory_is_in_no_file_once_packed(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=0)
    gone = a_point(tenant, "Marta buries the gold", "mem-canary")
    await index.upsert([*many(tenant, MANY), gone])
    await index.optimize()
    assert _holds(tmp_path, b"mem-canary")
    await index.delete_memories(tenant, [gone.memory_id])
    await index.optimize()
    assert not _holds(tmp_path, b"mem-canary")
    assert _is_packed(tmp_path)
    assert await index.count() == MANY
    await index.close()


EMPTYING = """
import sys, qdrant_edge as edge
from caisson.memory.adapters.qdrant_edge.requests import configuration
shard = edge.EdgeShard.load(sys.argv[1], configuration(int(sys.argv[2])))
shard.update(edge.UpdateOperation.delete_points_by_filter(edge.Filter()))
shard.close()
"""

FAILURES = [
    ("raise SystemExit(3)", 30, "it fails"),
    ("import time; time.sleep(60)", 0.5, "it hangs"),
    ("import shutil, sys; shutil.rmtree(sys.argv[1]); raise SystemExit(3)", 30, "it leaves what cannot be opened"),
    (EMPTYING, 30, "it loses points and does not tell"),
]


@pytest.mark.parametrize(("program", "within_s", "why"), FAILURES, ids=[row[2] for row in FAILURES])
def test_without_packing_nothing_is_lost_and_it_is_not_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, within_s: float, why: str
) -> None:
    monkeypatch.setattr(packing, "_PROGRAM", ("-c", program))
    monkeypatch.setattr(packing, "_ENDS_WITHIN_S", within_s)
    tenant, folder = a_tenant(), ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600)
    engine.write(many(tenant, MANY))
    assert not engine.optimize(), why
    assert (engine.size(), _is_packed(tmp_path)) == (MANY, False)
    tried = _in_force(tmp_path)
    assert engine.optimize()
    assert _in_force(tmp_path) == tried
    engine.close()


def test_where_no_process_can_be_started_what_was_deleted_leaves_the_files_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, folder = a_tenant(), ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=0)
    engine.write([*many(tenant, MANY), a_point(tenant, "Marta buries the gold", "mem-canary")])
    _delete(engine, tenant, ["mem-canary"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert not engine.optimize()
    assert not _holds(tmp_path, b"mem-canary")
    assert engine.size() == MANY
    engine.close()


def test_what_changes_while_packing_fails_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_PROGRAM", ("-c", "raise SystemExit(3)"))
    tenant = a_tenant()
    gone, late = a_point(tenant, "gone", "late-0"), a_point(tenant, "late", "late-1")

    def meanwhile() -> None:
        _delete(engine, tenant, [gone.memory_id])
        engine.write([late])

    folder = Meanwhile(tmp_path, meanwhile)
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600)
    engine.write([*many(tenant, MANY), gone])
    assert not engine.optimize()
    held = {memory for _, memory, _ in engine.stored(None, None, 2 * MANY)[0]}
    assert held == {f"mem-{n}" for n in range(MANY)} | {late.memory_id}
    engine.close()


def test_a_folder_from_before_packing_is_opened_and_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, known = a_tenant(), tmp_path / "store.json"
    with monkeypatch.context() as before:
        before.setattr(folder_module, "configuration", _unpacked)
        before.setattr(folder_module, "payload_indexes", _unpacked_indexes)
        folder = ShardFolder(tmp_path, stamp(IDENTITY))
        engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600)
        engine.write(many(tenant, MANY))
        engine.close()
    noted = json.loads(known.read_text())
    del noted["loose"]
    known.write_text(json.dumps(noted))
    folder = ShardFolder(tmp_path, stamp(IDENTITY))
    engine = Engine(folder, folder.open(rebuild=False), erase_within_s=3_600)
    assert engine.size() == MANY
    assert engine.optimize()
    assert _is_packed(tmp_path)
    assert engine.size() == MANY
    engine.close()


def test_a_packing_that_takes_long_is_no_reason_to_call_the_service_unready() -> None:
    assert app._OPTIMIZING_S > packing._ENDS_WITHIN_S + 60


async def test_the_log_tells_that_packing_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = await EdgeIndex.open(tmp_path, IDENTITY)

    async def unpacked(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(index._engine, "call", unpacked)
    with capture_logs() as logs:
        await index.optimize()
    assert [line["event"] for line in logs] == ["embedded_index.not_packed"]
    monkeypatch.undo()
    await index.close()


async def test_an_engine_killed_while_its_index_is_packed_takes_the_packer_along(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY)
    await index.upsert(many(tenant, MANY))
    optimizing = asyncio.create_task(index.optimize())
    packer = await eventually(lambda: _packer(tmp_path), within_s=60)
    assert packer is not None
    packer.suspend()
    engine = packer.parent()
    assert engine is not None
    engine.send_signal(signal.SIGKILL)
    try:
        await asyncio.to_thread(packer.wait, 10)
    finally:
        with suppress(psutil.NoSuchProcess):
            packer.kill()
    await asyncio.gather(optimizing, return_exceptions=True)

    await eventually(lambda: _counted(index), within_s=20)
    assert await index.count() == MANY
    await index.optimize()
    assert _is_packed(tmp_path)
    assert len(list(tmp_path.glob("shard-*"))) == 1
    await index.close()


async def _scores(index: EdgeIndex, tenant: TenantId, text: str) -> tuple[list[float], list[float]]:
    """Each leg's own scores, best first: of equal ones the engine picks any."""
    dense = await index.search(asking(text, sparse=False), a_filter(tenant))
    lexical = await index.search(asking(text, dense=False), a_filter(tenant))
    return [one.cosine or 0 for one in dense.found], [one.lexical or 0 for one in lexical.found]


class Meanwhile(ShardFolder):
    """A folder in which something happens while a shard is packed."""

    def __init__(self, path: Path, happens: Callable[[], None]) -> None:
        super().__init__(path, stamp(IDENTITY))
        self._happens = happens

    def pack(self, stored: Stored) -> bool:
        is_packed = super().pack(stored)
        self._happens()
        return is_packed


def _delete(engine: Engine, tenant: TenantId, memory_ids: Sequence[str]) -> None:
    for restriction in chunks_of(tenant, memory_ids):
        engine.remove(restriction)


def _in_force(folder: Path) -> str:
    name: str = json.loads((folder / "store.json").read_text())["shard"]
    return name


def _is_packed(folder: Path) -> bool:
    """Whether the shard in force has a segment of which terms are only read."""
    segments = (folder / _in_force(folder) / "segments").glob("*/segment.json")
    return any('"ImmutableRam"' in segment.read_text() for segment in segments)


def _holds(folder: Path, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def _packer(folder: Path) -> psutil.Process | None:
    """The process that packs a shard of the folder, once it has given way to the others."""
    for child in psutil.Process().children(recursive=True):
        try:
            is_one = any(part.startswith(f"{folder}/shard-") for part in child.cmdline())
            if is_one and child.nice() > psutil.Process().nice():
                return child
        except psutil.Error:
            continue
    return None


def _unpacked(dimensions: int) -> edge.EdgeConfig:
    """A configuration without packing: vectors and terms, everything else as the engine has it."""
    configuration = requests.configuration(dimensions)
    return edge.EdgeConfig(vectors=configuration.vectors, sparse_vectors=configuration.sparse_vectors)


def _unpacked_indexes() -> list[edge.UpdateOperation]:
    schema = edge.KeywordIndexParams(enable_hnsw=False)
    return [edge.UpdateOperation.create_field_index(field.value, schema) for field in KEYWORDS]


async def _counted(index: EdgeIndex) -> int:
    """How many points there are; 0 while the engine is away."""
    try:
        return await index.count()
    except Unavailable:
        return 0
