"""The embedded index under many hands, and searches that do not depend on where points lie."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.domain.fusion import Leg, best_of_each, fuse
from caisson.memory.domain.indexing import Candidates
from tests.support.memory_plane import MemoryPlane
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking
from tests.support.memory_process import Ground

WRITERS, BATCHES, POINTS = 8, 30, 20


@pytest.fixture(scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[EdgeIndex]]:
    """Three indexes: one to hold everything, and two to share it."""
    folder = tmp_path_factory.mktemp("embedded")
    async with AsyncExitStack() as stack:
        indexes = []
        for name in ("whole", "first", "second"):
            indexes.append(await EdgeIndex.open(folder / name, IDENTITY))
            stack.push_async_callback(indexes[-1].close)
        yield indexes


async def test_a_second_process_fails_fast_and_says_why(plane: MemoryPlane) -> None:
    """M56. While one service has the folder another one ends at once, names the holder, and harms nothing."""
    folder = plane.ground.folder / "memory"
    second = Ground(folder=folder, database_url=plane.ground.database_url, nats=plane.ground.nats)
    said = await second.refuse()
    assert plane.memory.process is not None
    assert f"is open in process {plane.memory.process.pid}" in said
    assert "MEMORY_INDEX=server" in said
    assert "Traceback" not in said
    assert plane.memory.process.returncode is None


async def test_eight_threads_lose_no_point(opened: list[EdgeIndex]) -> None:
    """M56. 8 threads with 30 upserts of 20 points each: 4,800 points, and each thread's are found."""
    index, tenant, loop = opened[0], a_tenant(), asyncio.get_running_loop()

    def write(writer: int) -> None:
        for batch in range(BATCHES):
            points = [a_point(tenant, f"crate {writer} {batch} {n}") for n in range(POINTS)]
            asyncio.run_coroutine_threadsafe(index.upsert(points), loop).result()

    with ThreadPoolExecutor(WRITERS) as threads:
        await asyncio.gather(*(loop.run_in_executor(threads, write, writer) for writer in range(WRITERS)))
    assert await index.count() == WRITERS * BATCHES * POINTS == 4_800, "the first to write here"
    assert len({memory_id async for _, memory_id, _ in index.stored(tenant)}) == 4_800
    for writer in range(WRITERS):
        found = await index.search(asking(f"crate {writer} 29 19", limit=5), a_filter(tenant))
        assert found.found[0].cosine == pytest.approx(1, abs=1e-3)
    await index.optimize()
    await index.check()


WORDS = ("tide", "buoy", "lock", "barge", "tug", "quay", "pier")


async def test_a_tenant_finds_the_same_wherever_the_others_lie(opened: list[EdgeIndex]) -> None:
    """M57. Two tenants in one index, or each in its own: the same ids with the same scores of every leg."""
    whole, *parts = opened
    tenants = [a_tenant() for _ in parts]
    for number, (tenant, part) in enumerate(zip(tenants, parts, strict=True)):
        names = [f"{WORDS[n % 7]} {WORDS[(n * (number + 2)) % 7]}" for n in range(40)]
        lengths = [" ".join(f"{tenant}{i}" for i in range(n)) for n in range(40)]
        points = [a_point(tenant, f"{names[n]} {lengths[n]}", f"mem-{n}") for n in range(40)]
        await asyncio.gather(whole.upsert(points), part.upsert(points))
    for word in WORDS:
        for tenant, part in zip(tenants, parts, strict=True):
            asked = asking(f"{word} tide", limit=20)
            alone, among = [await index.search(asked, a_filter(tenant)) for index in (part, whole)]
            assert [c.memory_id for c in alone.found] == [c.memory_id for c in among.found]
            assert [c.lexical for c in alone.found] == pytest.approx([c.lexical for c in among.found])


async def test_likeness_merged_over_two_is_that_of_one(opened: list[EdgeIndex]) -> None:
    """M57. A tenant spread over two indexes: the nearest of each, put together, are the nearest of all."""
    whole, *parts = opened
    tenant = a_tenant()
    points = [a_point(tenant, f"crate {n}", f"mem-{n}") for n in range(90)]
    await whole.upsert(points)
    for at, part in enumerate(parts):
        await part.upsert(points[at::2])
    for n in range(0, 90, 9):
        asked = asking(f"crate {n}", limit=12, sparse=False)
        one = await whole.search(asked, a_filter(tenant))
        two = [await part.search(asked, a_filter(tenant)) for part in parts]
        merged = best_of_each((c.memory_id, c.cosine or 0.0) for found in two for c in found.found)
        assert list(merged.items())[:12] == [(c.memory_id, c.cosine) for c in one.found]


legs = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.floats(-1, 1, width=16)), max_size=40)
shards = st.lists(st.integers(0, 2), min_size=40, max_size=40)


@given(dense=legs, sparse=legs, where=shards, limit=st.integers(1, 12))
def test_legs_of_three_shards_fuse_to_what_one_gives(
    dense: list[tuple[str, float]], sparse: list[tuple[str, float]], where: list[int], limit: int
) -> None:
    """M57. Each leg is merged over its shards by its own score, and fused once, at the root."""
    one = _fused(_leg([dense], limit), _leg([sparse], limit))
    assert _fused(_leg(_parts(dense, where), limit), _leg(_parts(sparse, where), limit)) == one


def test_fusing_each_shard_first_would_tell_another_order() -> None:
    """M57. Why not per shard: the best of a poor shard would count as much as the best of all."""
    rich, poor = [("a", 0.9), ("b", 0.8)], [("c", 0.1)]
    root = _fused(_leg([rich, poor], 3), {})
    nested = [candidate for part in (rich, poor) for candidate in _fused(_leg([part], 3), {}).found]
    scores = {candidate.memory_id: candidate.fused for candidate in nested}
    assert [candidate.memory_id for candidate in root.found] == ["a", "b", "c"]
    assert scores["c"] == scores["a"] > scores["b"]


def _parts(chunks: list[tuple[str, float]], where: list[int]) -> list[list[tuple[str, float]]]:
    return [[chunk for chunk, shard in zip(chunks, where, strict=False) if shard == n] for n in range(3)]


def _leg(parts: list[list[tuple[str, float]]], limit: int) -> dict[str, float]:
    """What a leg found over its shards, each cut to the limit before they are put together."""
    best = [list(best_of_each(part).items())[:limit] for part in parts]
    merged = best_of_each(found for part in best for found in part)
    return dict(list(merged.items())[:limit])


def _fused(dense: dict[str, float], sparse: dict[str, float]) -> Candidates:
    return fuse(Leg(best=dense, weight=3), Leg(best=sparse, weight=1), sparse_terms=1)
