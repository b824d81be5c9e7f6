"""Caisson's memory beside mem0's, in one run: the same memories of 100 tenants, questions, embedder and filters.

Caisson answers as a service over its bus; mem0 is a library in its caller's process, which spares it the way. mem0
runs without a language model (`infer=False`), on the Qdrant client's local mode, its default, and on pgvector.
Searches and additions take turns in short rounds, so that a noisy machine is noisy to all. Ratios are of medians of
searches and of additions one by one; above 1 Caisson is the faster. `mem0` is on local mode, `mem0_pgvector` is not.
"""

import random
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import uvloop

from bench.figures import Figure, percentile
from bench.mem0 import Mem0, local_qdrant, mem0, pgvector, scoped
from bench.memory_mem0_answers import answers
from bench.memory_plane import TENANTS, USERS, Filler, MemoryPlane, Taker, memory_plane, secret, sentences
from caisson.common import subjects
from caisson.common.memories import Caller, NewMemory, Remember, RememberedAll
from caisson.common.recalls import Recalled, Search
from caisson.memory.domain.indexing import Point
from caisson.stack.postgres import EmbeddedPostgres

SIZES = ((2_000, "2k"), (10_000, "10k"))
K = 8
PER_ROUND = 10
WARM_UP = 2
ROUNDS = 12
ADDED = 220
PER_BATCH = 100
OURS, LOCAL, PGVECTOR = "caisson", "mem0", "mem0_pgvector"

Asker = tuple[int, str]
"""The number of a caller, and a text."""
Side = Callable[[Sequence[Asker]], Awaitable[list[float]]]
"""Answers one after another and returns the milliseconds of each."""


def run() -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure())


async def _measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as name:
        folder = Path(name)
        figures = await _beside(folder)
        return figures + await answers(folder / "answers")


async def _beside(folder: Path) -> list[Figure]:
    figures: list[Figure] = []
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(memory_plane(folder / "caisson"))
        others = {
            LOCAL: await stack.enter_async_context(mem0(folder / LOCAL, local_qdrant(folder))),
            PGVECTOR: await stack.enter_async_context(mem0(folder / PGVECTOR, await _pgvector(folder, stack))),
        }
        print(", ".join(f"{name} {version}" for name, version in others[LOCAL].versions.items()), "\n")
        filler, filled, service = Filler(plane), 0, plane.service()
        for size, label in SIZES:
            await filler.fill(filled, size, also=[_taker(other) for other in others.values()])
            filled = size
            await service.start()
            stack.push_async_callback(service.stop)
            figures += await _searches(plane, others, label)
            if size < SIZES[-1][0]:
                await service.stop()
        return figures + await _additions(plane, others)


async def _pgvector(folder: Path, stack: AsyncExitStack) -> Mapping[str, Any]:
    """Start a PostgreSQL for it alone, as the stack's own is; only a superuser may create the extension."""
    server = EmbeddedPostgres(folder / "postgres", password=secret())
    await server.start()
    stack.push_async_callback(server.stop)
    superuser = await asyncpg.connect(server.url.replace("//gateway:", "//postgres:"))
    await superuser.execute("CREATE EXTENSION vector")
    await superuser.close()
    return pgvector(server.url)


def _taker(other: Mem0) -> Taker:
    async def take(points: Sequence[Point]) -> None:
        await other.fill([{"text": point.text, "vector": list(point.dense), **_owner(point)} for point in points])

    return take


def _owner(point: Point) -> dict[str, str]:
    (scope,) = point.scopes
    return {"agent_id": point.tenant, "user_id": scope}


async def _searches(plane: MemoryPlane, others: Mapping[str, Mem0], label: str) -> list[Figure]:
    rng = random.Random(label)
    texts = rng.sample(sentences(), ROUNDS * PER_ROUND)
    asked = [(rng.randrange(TENANTS * USERS), f"{text}?") for text in texts]
    sides = {OURS: partial(_search_ours, plane)} | {name: partial(_search, other) for name, other in others.items()}
    ms = await _in_turns(sides, asked)
    figures = [
        Figure(name=f"memory_{side}_search_p{percent}_ms_{label}", value=percentile(ms[side], percent), unit="ms")
        for side in ms
        for percent in (50, 95)
    ]
    return figures + [
        Figure(
            name=f"memory_{side}_search_ratio_{label}",
            value=percentile(ms[side], 50) / percentile(ms[OURS], 50),
            unit="times Caisson's",
        )
        for side in others
    ]


async def _additions(plane: MemoryPlane, others: Mapping[str, Mem0]) -> list[Figure]:
    """Measure additions one by one to what is stored already, then Caisson's batches, which mem0 has no call for."""
    added = [(number, f"{text} on day {number}") for number, text in enumerate(sentences()[:ADDED])]
    sides = {OURS: partial(_add_ours, plane)} | {name: partial(_add, other) for name, other in others.items()}
    ms = await _in_turns(sides, added)
    per_s = {side: 1_000 * len(spent) / sum(spent) for side, spent in ms.items()}
    batched = await _batches(plane)
    figures = [
        Figure(name=f"memory_{side}_adds_per_s", value=rate, unit="memories/s") for side, rate in per_s.items()
    ]
    figures.append(Figure(name="memory_caisson_batched_adds_per_s", value=batched, unit="memories/s"))
    return figures + [
        Figure(name=f"memory_{side}_adds_ratio", value=per_s[OURS] / per_s[side], unit="times mem0's")
        for side in others
    ]


async def _in_turns(sides: Mapping[str, Side], work: Sequence[Asker]) -> dict[str, list[float]]:
    """Let the sides do the same in short rounds; the first ones warm them up."""
    ms: dict[str, list[float]] = {side: [] for side in sides}
    for start in range(0, len(work), PER_ROUND):
        for side, does in sides.items():
            ms[side] += await does(work[start : start + PER_ROUND])
    return {side: spent[WARM_UP * PER_ROUND :] for side, spent in ms.items()}


async def _search_ours(plane: MemoryPlane, asked: Sequence[Asker]) -> list[float]:
    ms = []
    for number, text in asked:
        request = Search(caller=_caller(number), query=text, k=K)
        began = perf_counter()
        recalled = await plane.ask(subjects.MEMORY_SEARCH, request, Recalled)
        ms.append((perf_counter() - began) * 1_000)
        if not recalled.diagnostics.found or recalled.diagnostics.degraded:
            raise RuntimeError(f"not what is measured: {recalled.diagnostics}")
    return ms


async def _search(other: Mem0, asked: Sequence[Asker]) -> list[float]:
    questions = []
    for number, text in asked:
        caller = _caller(number)
        filters = scoped(caller.tenant_id, ("tenant", f"user:{caller.user_id}"))
        questions.append({"query": text, "top_k": K, "filters": filters})
    ms, found = await other.search(questions)
    if not any(found):
        raise RuntimeError("not what is measured: no search found anything")
    return ms


async def _add_ours(plane: MemoryPlane, added: Sequence[Asker]) -> list[float]:
    ms = []
    for number, text in added:
        request = Remember(caller=_caller(number), memories=[NewMemory(text=text)])
        began = perf_counter()
        await _remembered(plane, request)
        ms.append((perf_counter() - began) * 1_000)
    return ms


async def _add(other: Mem0, added: Sequence[Asker]) -> list[float]:
    memories = []
    for number, text in added:
        caller = _caller(number)
        memories.append({"text": text, "agent_id": caller.tenant_id, "user_id": f"user:{caller.user_id}"})
    return await other.add(memories)


async def _batches(plane: MemoryPlane) -> float:
    began = perf_counter()
    for number, start in enumerate(range(0, 10 * PER_BATCH, PER_BATCH)):
        texts = [f"{text} in week {number}" for text in sentences()[start : start + PER_BATCH]]
        request = Remember(caller=_caller(number), memories=[NewMemory(text=text) for text in texts])
        await _remembered(plane, request)
    return 10 * PER_BATCH / (perf_counter() - began)


async def _remembered(plane: MemoryPlane, request: Remember) -> None:
    answer = await plane.ask(subjects.MEMORY_REMEMBER, request, RememberedAll)
    if any(result.status != "created" for result in answer.results):
        raise RuntimeError(f"not what is measured: {answer}")


def _caller(number: int) -> Caller:
    return Caller(tenant_id=f"tenant-{number % TENANTS}", user_id=f"user-{number // TENANTS % USERS}", scopes=[])
