"""How long memory's event loop stands still while callers search, write and delete and the index is compacted.

The service tells it itself: `caisson_event_loop_lag_max_seconds`. What is deleted is due at once here, so that
compactions follow one another.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from time import monotonic

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bench.figures import Figure
from bench.memory_plane import MemoryPlane, caller, questions, sentence
from caisson.common import subjects
from caisson.common.memories import ById, NewMemory, Receipt, Remember, RememberedAll
from caisson.common.recalls import Recalled
from caisson.stack.service_process import ServiceProcess

WITHIN_S = 120.0
BAR_MS = 50.0
PER_BATCH = 50
PAUSE_S = 0.01
METRIC = "caisson_event_loop_lag_max_seconds"


async def blocked(plane: MemoryPlane) -> Figure:
    """Return the figure, of the memories that the plane holds."""
    service = plane.service(MEMORY_ERASE_WITHIN_S="0", MEMORY_SWEEP_S="1")
    await service.start()
    try:
        await _use_until_compacted(plane)
        worst_s = await _worst_s(service)
    finally:
        await service.stop()
    return Figure(name="memory_loop_blocked_max_ms", value=worst_s * 1_000, unit="ms", bar=BAR_MS)


async def _use_until_compacted(plane: MemoryPlane) -> None:
    before, rng, written = _shard(plane), random.Random(5), list[tuple[int, str]]()
    asked = questions(1_000)

    async def search(turn: int) -> None:
        await plane.ask(subjects.MEMORY_SEARCH, asked[turn % len(asked)], Recalled)

    async def write(turn: int) -> None:
        memories = [NewMemory(text=f"{sentence(rng)} on day {turn} of year {n}") for n in range(PER_BATCH)]
        answer = await plane.ask(
            subjects.MEMORY_REMEMBER, Remember(caller=caller(turn), memories=memories), RememberedAll
        )
        written.extend((turn, result.id) for result in answer.results if result.status == "created" and result.id)

    async def delete(_: int) -> None:
        await asyncio.sleep(PAUSE_S)
        if written:
            turn, memory_id = written.pop()
            await plane.ask(subjects.MEMORY_DELETE, ById(caller=caller(turn), id=memory_id), Receipt)

    users = [asyncio.create_task(_repeat(work)) for work in (search, search, write, delete)]
    give_up = monotonic() + WITHIN_S
    while _shard(plane) == before and monotonic() < give_up and not any(user.done() for user in users):
        await asyncio.sleep(0.1)
    for user in users:
        user.cancel()
    ended = await asyncio.gather(*users, return_exceptions=True)
    if _shard(plane) == before:
        raise RuntimeError(f"not what is measured: the index was not compacted; {ended}")


async def _repeat(work: Callable[[int], Awaitable[None]]) -> None:
    turn = 0
    while True:
        await work(turn)
        turn += 1


def _shard(plane: MemoryPlane) -> str:
    """The shard of the index that is in force."""
    name: str = json.loads((plane.folder.index("memory") / "store.json").read_text())["shard"]
    return name


async def _worst_s(service: ServiceProcess) -> float:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        told = (await client.get(f"{service.addresses['admin']}/metrics")).text
    [worst] = [s.value for f in text_string_to_metric_families(told) for s in f.samples if s.name == METRIC]
    return float(worst)
