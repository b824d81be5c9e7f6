"""The embedded index on its own: one process, no loss, no foreign embedder, nothing left of what was deleted."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import qdrant_edge as edge

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.embedder_stamp import stamp
from caisson.memory.adapters.point_payload import Field
from caisson.memory.adapters.qdrant_edge.folder import ShardFolder
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.qdrant_edge.requests import dense_leg, filter_of, lexical_leg
from caisson.memory.adapters.qdrant_edge.work import remove, size
from caisson.memory.adapters.restrictions import AnyOf, Restriction, visible
from caisson.memory.domain.indexing import EmbedderIdentity
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking, vector_of

WRITER = (sys.executable, "-m", "tests.support.edge_writer")


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[EdgeIndex]:
    opened = await EdgeIndex.open(tmp_path, IDENTITY)
    yield opened
    await opened.close()


async def test_a_second_process_is_refused_at_once_and_told_why(index: EdgeIndex, tmp_path: Path) -> None:
    second = await asyncio.create_subprocess_exec(*WRITER, str(tmp_path), "t", stdout=PIPE, stderr=PIPE)
    _, told = await second.communicate()
    assert second.returncode != 0
    assert f"is open in process {os.getpid()}" in told.decode()
    assert "MEMORY_INDEX=server" in told.decode()
    await index.check()
    with pytest.raises(Misconfigured, match="one process"):
        await EdgeIndex.open(tmp_path, IDENTITY)


async def test_an_engine_that_outlives_its_killed_service_is_waited_for(tmp_path: Path) -> None:
    """On a busy host, or while it is starting, it notices late; here it is stopped."""
    writer = await asyncio.create_subprocess_exec(*WRITER, str(tmp_path), "t", stdout=PIPE)
    assert writer.stdout is not None
    await writer.stdout.readline()
    [engine] = psutil.Process(writer.pid).children()
    engine.suspend()
    writer.kill()
    await writer.wait()
    opening = asyncio.create_task(EdgeIndex.open(tmp_path, IDENTITY))
    done, _ = await asyncio.wait({opening}, timeout=1.5)
    engine.resume()
    assert not done
    await (await opening).close()


async def test_what_was_acknowledged_survives_the_kill_of_the_process(tmp_path: Path) -> None:
    tenant = a_tenant()
    writer = await asyncio.create_subprocess_exec(*WRITER, str(tmp_path), tenant, stdout=PIPE)
    assert writer.stdout is not None
    acknowledged = [int(await writer.stdout.readline()) for _ in range(20)][-1]
    writer.send_signal(signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, (await writer.stdout.read()).split())])
    assert await writer.wait() == -signal.SIGKILL

    index = await EdgeIndex.open(tmp_path, IDENTITY)
    stored = {memory_id async for _, memory_id, _ in index.stored(tenant)}
    assert {f"mem-{number}-{n}" for number in range(acknowledged + 1) for n in range(10)} <= stored
    best = (await index.search(asking(f"crate {acknowledged} 7"), a_filter(tenant))).found[0]
    assert best.memory_id == f"mem-{acknowledged}-7"
    await index.close()


OTHERS = [
    (replace(IDENTITY, dimensions=16), ("32 dimensions", "16 dimensions"), "another length"),
    (replace(IDENTITY, digest="f" * 64), ("0" * 16, "f" * 16), "the same length of another model"),
]


@pytest.mark.parametrize(("other", "told", "why"), OTHERS, ids=[row[2] for row in OTHERS])
async def test_another_embedder_is_refused_unless_it_rebuilds(
    tmp_path: Path, other: EmbedderIdentity, told: tuple[str, str], why: str
) -> None:
    index = await EdgeIndex.open(tmp_path, IDENTITY)
    await index.upsert([a_point(a_tenant(), "old")])
    await index.close()
    with pytest.raises(Misconfigured) as refused:
        await EdgeIndex.open(tmp_path, other)
    assert all(part in refused.value.detail for part in told), why
    kept = await EdgeIndex.open(tmp_path, IDENTITY, rebuild=True)
    assert await kept.count() == 1, "a rebuild by the same embedder keeps what is there"
    await kept.close()
    rebuilt = await EdgeIndex.open(tmp_path, other, rebuild=True)
    assert await rebuilt.count() == 0
    await rebuilt.close()
    assert len(list(tmp_path.glob("shard-*"))) == 1


async def test_optimizing_drops_what_was_deleted_while_writes_go_on(tmp_path: Path) -> None:
    tenant, index = a_tenant(), await EdgeIndex.open(tmp_path, IDENTITY, erase_within_s=0)
    await index.upsert([a_point(tenant, f"row {n}", f"mem-{n}") for n in range(2_400)])
    before = _shard(tmp_path)
    await index.delete_memories(tenant, [f"mem-{n}" for n in range(400)])
    optimizing = asyncio.create_task(index.optimize())
    written = [f"new-{n}" for n in range(40)]
    for n, memory_id in enumerate(written):
        await index.upsert([a_point(tenant, f"new row {n}", memory_id)])
        await index.delete_memories(tenant, [f"mem-{400 + n}", f"mem-{2_399 - n}"])
    await optimizing
    expected = {f"mem-{n}" for n in range(440, 2_360)} | set(written)
    for _ in ("as it is", "and opened again"):
        assert {memory_id async for _, memory_id, _ in index.stored(tenant)} == expected
        found = (await index.search(asking("row 2300"), a_filter(tenant))).found
        assert found[0].memory_id == "mem-2300"
        await index.close()
        index = await EdgeIndex.open(tmp_path, IDENTITY)
    await index.close()
    assert _shard(tmp_path) != before


async def test_closed_is_unavailable_and_closing_twice_is_nothing(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path, IDENTITY)
    await index.close()
    await index.close()
    with pytest.raises(Unavailable):
        await index.check()


async def test_our_fusion_is_the_engines_own(tmp_path: Path) -> None:
    index, tenant = await EdgeIndex.open(tmp_path, IDENTITY), a_tenant()
    words = ["tide", "buoy", "lock", "barge", "tug", "quay"]
    texts = [f"{words[n % 6]} {words[n % 5]} at " + " ".join(f"pier{i}" for i in range(n)) for n in range(60)]
    await index.upsert([a_point(tenant, text, text) for text in texts])
    ours = {word: (await index.search(asking(f"{word} tide", limit=15), a_filter(tenant))).found for word in words}
    await index.close()
    shard = _opened(tmp_path)
    for word in words:
        theirs = _fused(shard, f"{word} tide", visible(a_filter(tenant)), 15)
        assert {c.memory_id: pytest.approx(c.fused) for c in ours[word]} == theirs
        assert ours[word][0].memory_id == next(iter(theirs))
    shard.close()


async def test_no_values_match_nothing_and_no_restriction_is_without_a_tenant(tmp_path: Path) -> None:
    index, tenant = await EdgeIndex.open(tmp_path, IDENTITY), a_tenant()
    await index.upsert([a_point(tenant, "one"), a_point(a_tenant(), "two")])
    await index.close()
    shard = _opened(tmp_path)
    nothing = Restriction(tenant, (AnyOf(Field.ACCESS, ()),))
    remove(shard, nothing)
    assert [size(shard, which) for which in (Restriction(tenant), nothing, None)] == [1, 0, 2]
    shard.close()


def _fused(shard: edge.EdgeShard, text: str, restriction: Restriction, limit: int) -> dict[str, float]:
    """The engine's fusion over our two legs, each as deep as ours; scores by memory, best first."""
    legs = [
        dense_leg(vector_of(text), restriction, limit),
        lexical_leg(Bm25().query(text), restriction, limit),
    ]
    prefetches = [edge.Prefetch(limit, query=leg.query, filter=leg.filter, params=leg.params) for leg in legs]
    hits = shard.query(
        edge.QueryRequest(
            2 * limit,
            query=edge.Fusion.Rrf(k=2, weights=[3.0, 1.0]),  # type: ignore[arg-type]  # the stub has it nested
            prefetches=prefetches,
            filter=filter_of(restriction),
            with_payload=[Field.MEMORY.value],
        )
    )
    return {(hit.payload or {})[Field.MEMORY.value]: hit.score for hit in hits}


def _opened(folder: Path) -> edge.EdgeShard:
    """The engine over a folder that nobody has open."""
    return ShardFolder(folder, stamp(IDENTITY)).open(rebuild=False).shard


def _shard(folder: Path) -> str:
    (shard,) = folder.glob("shard-*")
    return shard.name
