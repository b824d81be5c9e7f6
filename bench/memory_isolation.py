"""A soak: 50,000 searches for what other tenants and users have just written, while they write, delete and tidy up.

Each tenant keeps storing words that nobody else knows, shared and private ones; every probe asks for all of those
words at once, with every way of asking in turn. One foreign word in one answer breaks the bar.
"""

import asyncio
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import uvloop

from bench.figures import Figure
from bench.memory_plane import MemoryPlane, memory_plane, secret
from caisson.common import subjects
from caisson.common.memories import (
    ById,
    Caller,
    Context,
    ListMemories,
    MemoryPage,
    NewMemory,
    Recalled,
    Receipt,
    Reconcile,
    Reconciled,
    Remember,
    RememberedAll,
    Search,
)

TENANTS = ("acme", "acme0", "acme-x", "globex")
USERS = ("ana", "ana2")
PROBES = 50_000
PROBERS = 6
KEPT = 20
SETTINGS = {"MEMORY_LOG_LEVEL": "error", "MEMORY_SWEEP_S": "1"}


def run(probes: int = PROBES) -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure(probes))


@dataclass(kw_only=True)
class Seen:
    """What probes found."""

    probes: int = 0
    own: int = 0
    foreign: int = 0
    changes: int = 0
    lapses: list[str] = field(default_factory=list)


class Owner:
    """A user of a tenant, who writes and deletes; `word` is in everything that is its own, `shared` in the rest."""

    def __init__(self, plane: MemoryPlane, tenant: str, user: str, shared: str) -> None:
        self._plane = plane
        self.caller = Caller(tenant_id=tenant, user_id=user, scopes=[])
        self.word, self.shared = secret(), shared
        self._kept: list[str] = []

    async def churn(self, seen: Seen, stop: asyncio.Event) -> None:
        """Write and delete until it is told to stop."""
        number = 0
        while not stop.is_set():
            number += 1
            texts = [f"{self.word} note {number}", f"{self.shared} notice {number} of {self.caller.user_id}"]
            memories = [NewMemory(text=texts[0]), NewMemory(text=texts[1], scopes=["tenant"])]
            request = Remember(caller=self.caller, memories=memories)
            answer = await self._plane.ask(subjects.MEMORY_REMEMBER, request, RememberedAll)
            self._kept += [result.id for result in answer.results if result.status == "created" and result.id]
            while len(self._kept) > KEPT:
                gone = ById(caller=self.caller, id=self._kept.pop(0))
                await self._plane.ask(subjects.MEMORY_DELETE, gone, Receipt)
                seen.changes += 1
            if number % 20 == 0:
                await self._plane.ask(subjects.MEMORY_RECONCILE, Reconcile(caller=self.caller), Reconciled)


async def _measure(probes: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        async with memory_plane(Path(folder), settings=SETTINGS) as plane:
            service = plane.service()
            await service.start()
            try:
                return await _soak(plane, probes)
            finally:
                await service.stop()


async def _soak(plane: MemoryPlane, probes: int) -> list[Figure]:
    shared = {tenant: secret() for tenant in TENANTS}
    owners = [Owner(plane, tenant, user, shared[tenant]) for tenant in TENANTS for user in USERS]
    seen, stop = Seen(), asyncio.Event()
    began = perf_counter()
    changing = [asyncio.create_task(owner.churn(seen, stop)) for owner in owners]
    try:
        await asyncio.gather(*(_probe(plane, owners, seen, probes // PROBERS, seed) for seed in range(PROBERS)))
    finally:
        stop.set()
        await asyncio.gather(*changing)
    for lapse in seen.lapses[:10]:
        print(lapse)
    return [
        Figure(name="memory_probes", value=seen.probes, unit="searches"),
        Figure(name="memory_probes_per_s", value=seen.probes / (perf_counter() - began), unit="searches/s"),
        Figure(name="memory_probes_own_found", value=seen.own, unit="memories", bar=1, wanted="at least"),
        Figure(name="memory_probes_foreign_found", value=seen.foreign, unit="memories", bar=0),
        Figure(name="memory_deletions_meanwhile", value=seen.changes, unit="memories"),
    ]


async def _probe(plane: MemoryPlane, owners: Sequence[Owner], seen: Seen, count: int, seed: int) -> None:
    rng = random.Random(seed)
    words = [owner.word for owner in owners] + sorted({owner.shared for owner in owners})
    for number in range(count):
        asker = owners[rng.randrange(len(owners))]
        mine = {asker.word, asker.shared}
        texts = await _ask(plane, asker.caller, " ".join(rng.sample(words, len(words))), number)
        seen.probes += 1
        for text in texts:
            foreign = any(word in text for word in words if word not in mine)
            seen.foreign += foreign
            seen.own += not foreign
            if foreign:
                seen.lapses.append(f"{asker.caller} was told {text!r}")


async def _ask(plane: MemoryPlane, caller: Caller, query: str, number: int) -> list[str]:
    """Ask in one of three ways."""
    match number % 10:
        case 8:
            search = Search(caller=caller, query=query, k=100, token_budget=100_000)
            return [(await plane.ask(subjects.MEMORY_CONTEXT, search, Context)).text]
        case 9:
            page = await plane.ask(subjects.MEMORY_LIST, ListMemories(caller=caller, limit=200), MemoryPage)
            return [memory.text for memory in page.items]
        case _:
            search = Search(caller=caller, query=query, k=100, token_budget=100_000)
            recalled = await plane.ask(subjects.MEMORY_SEARCH, search, Recalled)
            return [hit.memory.text for hit in recalled.hits]
