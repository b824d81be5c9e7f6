"""A soak: 50,000 searches for what other tenants and users have just written, while everything changes.

Six tenants and three users of each, lookalikes all, keep storing words that nobody else knows: private ones, shared
ones, and ones in named scopes. Each probe asks for its own and for foreign words at once, in each way of asking in
turn. Meanwhile they write, delete and reconcile, the index is copied whenever something was deleted, and its process
is killed again and again, so that PostgreSQL alone answers. One foreign word in one answer breaks the bar.
"""

import asyncio
import json
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import psutil
import uvloop

from bench.figures import Figure
from bench.memory_plane import MemoryPlane, memory_plane, secret
from caisson.common import subjects
from caisson.common.errors import NotFound, Unavailable
from caisson.common.memories import (
    ById,
    Caller,
    Exported,
    History,
    LayerName,
    ListMemories,
    MemoryPage,
    NewMemory,
    OfUser,
    Receipt,
    Remember,
    RememberedAll,
)
from caisson.common.memory_upkeep import Reconcile, Reconciled
from caisson.common.recalls import Context, Recalled, Search

TENANTS = ("acme", "acme0", "Acme", "acm\u00e9", "acme\u0301", "\u0430cme")
"""A prefix of another, another case, an accent in one character and in two, a Cyrillic letter."""
USERS = ("ana", "ana2", "Ana")
SCOPES = ("team:a", "team:ab")
PROBES = 75_000
"""Two thirds of them are searches and contexts."""
PROBERS = 6
TOLD_EVERY = 5_000
KEPT = 3
FOREIGN_WORDS = 2
SENTENCE = "is the word that the harbour master wrote down"
"""In every text and in every query, so that the gate lets own memories pass even where terms alone are compared."""
WRITE_PAUSE_S = 1.0
INDEX_AWAY_EVERY_S = 45.0
"""Longer than half a minute, or the service would wait longer and longer before it starts it anew."""
SETTINGS = {
    "MEMORY_LOG_LEVEL": "error",
    "MEMORY_EMBEDDER": "wordllama",
    "MEMORY_SWEEP_S": "1",
    "MEMORY_ERASE_WITHIN_S": "0",
}
"""The quickest embedder: who sees what does not depend on it."""

Word = tuple[str, str]
"""A tenant, and the scope in it that a word was said in."""


@dataclass(kw_only=True)
class Seen:
    """What probes found, by way of asking."""

    probes: Counter[str] = field(default_factory=Counter)
    own: Counter[str] = field(default_factory=Counter)
    foreign: list[str] = field(default_factory=list)
    deleted: int = 0
    copies: int = 0
    drifted: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class World:
    """The service, every word in it, and who owns what at the moment."""

    plane: MemoryPlane
    seen: Seen = field(default_factory=Seen)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    words: dict[Word, str] = field(default_factory=dict)
    kept: dict[Word, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tenant in TENANTS:
            for scope in ("tenant", *SCOPES, *(f"user:{user}" for user in USERS)):
                self.words[tenant, scope], self.kept[tenant, scope] = secret(), []

    async def churn(self, word: Word) -> None:
        """Write the word again and again, and delete what is old, until it is time to stop."""
        tenant, scope = word
        user = scope.removeprefix("user:") if scope.startswith("user:") else USERS[0]
        caller, kept, number = Caller(tenant_id=tenant, user_id=user, scopes=list(SCOPES)), self.kept[word], 0
        while not self.stop.is_set():
            number += 1
            memory = NewMemory(text=f"{self.words[word]} {SENTENCE}, note {number}", scopes=[scope])
            asked = Remember(caller=caller, memories=[memory])
            answer = await self.plane.ask(subjects.MEMORY_REMEMBER, asked, RememberedAll)
            kept += [result.id for result in answer.results if result.status == "created" and result.id]
            while len(kept) > KEPT:
                await self.plane.ask(subjects.MEMORY_DELETE, ById(caller=caller, id=kept.pop(0)), Receipt)
                self.seen.deleted += 1
            if number % 20 == 0:
                await self._reconcile(caller)
            await asyncio.sleep(WRITE_PAUSE_S)

    async def _reconcile(self, caller: Caller) -> None:
        with suppress(Unavailable):
            found = await self.plane.ask(subjects.MEMORY_RECONCILE, Reconcile(caller=caller), Reconciled)
            self.seen.drifted += found.missing + found.orphaned + found.stale

    async def watch_copies(self) -> None:
        """Count how often another shard of the index comes into force."""
        store = self.plane.folder.index("memory") / "store.json"
        before = json.loads(store.read_text())["shard"]
        while not self.stop.is_set():
            with suppress(FileNotFoundError):
                now = json.loads(store.read_text())["shard"]
                self.seen.copies += now != before
                before = now
            await asyncio.sleep(0.02)

    async def take_the_index_away(self, service_pid: int) -> None:
        """Kill the process of the index every few seconds; the service starts it anew."""
        while not self.stop.is_set():
            for child in psutil.Process(service_pid).children():
                with suppress(psutil.NoSuchProcess):
                    child.send_signal(signal.SIGKILL)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), INDEX_AWAY_EVERY_S)


def run(probes: int = PROBES) -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure(probes))


async def _measure(probes: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        async with memory_plane(Path(folder), settings=SETTINGS) as plane:
            service = plane.service()
            await service.start()
            try:
                return await _soak(World(plane=plane), probes, service.process.pid if service.process else 0)
            finally:
                await service.stop()


async def _soak(world: World, probes: int, service_pid: int) -> list[Figure]:
    began = perf_counter()
    works = [world.churn(word) for word in world.words]
    changing = [
        asyncio.create_task(work) for work in (*works, world.watch_copies(), world.take_the_index_away(service_pid))
    ]
    try:
        await asyncio.gather(*(_probe(world, probes // PROBERS, random.Random(seed)) for seed in range(PROBERS)))
    finally:
        world.stop.set()
        outcomes = await asyncio.gather(*changing, return_exceptions=True)
        world.seen.failed = [repr(outcome) for outcome in outcomes if outcome is not None]
    return _figures(world.seen, perf_counter() - began)


def _figures(seen: Seen, took_s: float) -> list[Figure]:
    for lapse in [*seen.foreign[:10], *seen.failed[:10]]:
        print(lapse)
    print("probes by way of asking:", dict(seen.probes), "own words found:", dict(seen.own))
    least = min(seen.own[way] for way in seen.probes if "of another" not in way)
    searches = sum(number for way, number in seen.probes.items() if "search" in way or "context" in way)
    degraded = sum(number for way, number in seen.probes.items() if "degraded" in way)
    return [
        Figure(name="memory_probes", value=seen.probes.total(), unit="probes"),
        Figure(name="memory_probe_searches", value=searches, unit="searches", bar=50_000, wanted="at least"),
        Figure(name="memory_probes_per_s", value=seen.probes.total() / took_s, unit="probes/s"),
        Figure(name="memory_probes_degraded", value=degraded, unit="probes", bar=1, wanted="at least"),
        Figure(name="memory_probes_own_found_least", value=least, unit="memories", bar=1, wanted="at least"),
        Figure(name="memory_probes_foreign_found", value=len(seen.foreign), unit="memories", bar=0),
        Figure(name="memory_deletions_meanwhile", value=seen.deleted, unit="memories"),
        Figure(name="memory_copies_meanwhile", value=seen.copies, unit="copies", bar=1, wanted="at least"),
        Figure(name="memory_writers_failed", value=len(seen.failed), unit="writers", bar=0),
        Figure(name="memory_drift_meanwhile", value=seen.drifted, unit="memories", bar=0),
    ]


async def _probe(world: World, count: int, rng: random.Random) -> None:
    ways: tuple[Way, ...] = (*[_search] * 5, _context, _list, _export, _of_another)
    for number in range(count):
        tenant, user = rng.choice(TENANTS), rng.choice(USERS)
        scopes = rng.choice(((), SCOPES[:1], SCOPES[1:], SCOPES))
        caller = Caller(tenant_id=tenant, user_id=user, scopes=list(scopes))
        mine = {(tenant, scope) for scope in ("tenant", f"user:{user}", *scopes)}
        foreign = [word for word in world.words if word not in mine]
        asked = [world.words[word] for word in (rng.choice(sorted(mine)), *rng.sample(foreign, FOREIGN_WORDS))]
        rng.shuffle(asked)
        way, texts = await ways[number % len(ways)](world, caller, f"{' '.join(asked)} {SENTENCE}", foreign, rng)
        world.seen.probes[f"{way}, named scopes" if scopes else way] += 1
        if world.seen.probes.total() % TOLD_EVERY == 0:
            print(f"{world.seen.probes.total()} probes, {len(world.seen.foreign)} foreign", flush=True)
        for text in texts:
            if lapses := [world.words[word] for word in foreign if world.words[word] in text]:
                world.seen.foreign.append(f"{way}: {caller} was told {lapses} in {text[:200]!r}")
            else:
                world.seen.own[f"{way}, named scopes" if scopes else way] += 1


Told = tuple[str, Sequence[str]]
Way = Callable[[World, Caller, str, list[Word], random.Random], Awaitable[Told]]


async def _search(world: World, caller: Caller, query: str, _: list[Word], rng: random.Random) -> Told:
    choices: tuple[list[LayerName], ...] = ([], ["semantic"], ["semantic", "episodic"])
    layers = rng.choice(choices)
    asked = Search(caller=caller, query=query, k=30, token_budget=100_000, layers=layers)
    recalled = await world.plane.ask(subjects.MEMORY_SEARCH, asked, Recalled)
    way = "degraded search" if recalled.diagnostics.degraded else "search"
    return way, [hit.memory.text for hit in recalled.hits]


async def _context(world: World, caller: Caller, query: str, _: list[Word], __: random.Random) -> Told:
    asked = Search(caller=caller, query=query, k=30, token_budget=100_000)
    context = await world.plane.ask(subjects.MEMORY_CONTEXT, asked, Context)
    return "degraded context" if context.diagnostics.degraded else "context", [context.text] if context.ids else []


async def _list(world: World, caller: Caller, _: str, __: list[Word], ___: random.Random) -> Told:
    page = await world.plane.ask(subjects.MEMORY_LIST, ListMemories(caller=caller, limit=200), MemoryPage)
    return "list", [memory.text for memory in page.items]


async def _export(world: World, caller: Caller, _: str, __: list[Word], ___: random.Random) -> Told:
    asked = OfUser(caller=caller, user_id=caller.user_id, limit=200)
    page = await world.plane.ask(subjects.MEMORY_EXPORT_USER, asked, Exported)
    return "export", [memory.text for memory in page.items]


async def _of_another(world: World, caller: Caller, _: str, foreign: list[Word], rng: random.Random) -> Told:
    """Ask for a memory by the id that its owner knows."""
    ids = world.kept[rng.choice(foreign)]
    try:
        asked = ById(caller=caller, id=rng.choice(ids) if ids else "mem_none")
        history = await world.plane.ask(subjects.MEMORY_HISTORY, asked, History)
    except NotFound:
        return "history of another", []
    return "history of another", [entry.text or "" for entry in history.entries]
