"""A memory service that is killed under writes, started again, and held against what its callers were told."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Any

from caisson.common import subjects
from caisson.common.errors import NotFound
from caisson.common.memories import ById, History, ListMemories, MemoryPage, MemoryView
from caisson.common.memory_upkeep import Reconcile, Reconciled
from caisson.common.postgres import Pool
from caisson.common.recalls import Recalled, Search
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.wordllama import WordLlama
from caisson.stack.children import StackError
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.memory_journal import Seen
from tests.support.memory_writers import Ask, Writer

_SAMPLE = 4
_FIRST_START_S = 1.5
_COPY_WITHIN_S = 10.0
_CAUGHT_UP_WITHIN_S = 40.0
_ANSWERS_ARRIVE_S = 0.05
_WANTED = """
SELECT tenant_id, memory_id, version, chunks FROM memory.memories m
WHERE status <> 'cold' AND (expires_at IS NULL OR expires_at > now())
"""
_OWNED = """
SELECT memory_id, text, status, layer, attribute, provenance_kind = 'consolidation' AS is_summary
FROM memory.memories WHERE tenant_id = $1 AND owner_scope = 'user:' || $2
"""
_AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'caisson-memory' AND datname = current_database()
"""
_WAITING = "SELECT tenant_id, memory_id FROM memory.index_outbox"
_TEXTS = "SELECT memory_id, text FROM memory.memories UNION ALL SELECT memory_id, text FROM memory.history"
_ACCOUNTS = """
SELECT tenant_id, who, sum(rows) AS rows, sum(bytes) AS bytes FROM (
    SELECT tenant_id, unnest(ARRAY['', user_id]) AS who, (status <> 'superseded')::int AS rows, bytes
    FROM memory.memories
    UNION ALL SELECT tenant_id, user_id, -rows, -bytes FROM memory.usage) held
GROUP BY 1, 2 HAVING sum(rows) <> 0 OR sum(bytes) <> 0
"""


SETTINGS = {
    "MEMORY_LOG_LEVEL": "warning",
    "MEMORY_EMBEDDER": "wordllama",
    "MEMORY_RELAY_POLL_S": "0.1",
    "MEMORY_SWEEP_S": "0.1",
    "MEMORY_ERASE_WITHIN_S": "0",
}
"""The quickest embedder, so that much is written between two kills, and an index that is copied all the time."""


class Moment(StrEnum):
    """When a kill falls."""

    WRITES = "writes"
    START = "start"
    COPY = "copy"


@dataclass(kw_only=True)
class Tally:
    """What happened."""

    kills: Counter[Moment] = field(default_factory=Counter)
    amid_copies: int = 0
    unanswered: int = 0
    compared: int = 0
    restarts_s: list[float] = field(default_factory=list)
    lapses: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Ordeal:
    """One service, its writers and its servers. `index` is the folder of the embedded index.

    A kill under writes falls within `writing_s` of their beginning.
    """

    service: ServiceProcess
    index: Path
    pool: Pool
    ask: Ask[Any]
    writers: Sequence[Writer]
    rng: random.Random
    writing_s: float = 4.0
    tally: Tally = field(default_factory=Tally)

    async def kill(self, moment: Moment) -> None:
        """Let everybody write, kill the service at some moment, and look at what it left."""
        if moment is Moment.START:
            await self._kill_a_start()
        else:
            await self._start()
            await self._kill_amid(self._some_time if moment is Moment.WRITES else self._copying)
        self.tally.kills[moment] += 1
        await self._settle()
        await self.compare_points()

    async def examine(self) -> None:
        """Start the service and hold what it tells against the journals, then the index against the store."""
        await self._start()
        await eventually(self._is_caught_up, within_s=_CAUGHT_UP_WITHIN_S)
        for writer in self.writers:
            exported = await writer.exported()
            self._note(writer, writer.journal.settle(exported))
            self._note(writer, await self._read(writer, exported))
        for writer in self.writers:
            drift = await self.ask(subjects.MEMORY_RECONCILE, Reconcile(caller=writer.caller), Reconciled)
            if drift.missing or drift.orphaned or drift.stale:
                self._note(writer, [f"drifted: {drift}"])
        await self._look_into_tables()
        await self._end()
        await self.compare_points(all_settled=True)

    async def _settle(self) -> None:
        """Learn from the store what became of requests without an answer, once its last transaction has ended."""
        await eventually(self._is_left_alone)
        for writer in self.writers:
            self.tally.unanswered += writer.journal.unanswered is not None
            rows = await self.pool.fetch(_OWNED, writer.tenant, writer.caller.user_id)
            stored = {row["memory_id"]: Seen(**dict(list(row.items())[1:])) for row in rows}
            self._note(writer, writer.journal.settle(stored))

    async def _is_left_alone(self) -> bool:
        return not await self.pool.fetchval(_AT_WORK)

    async def compare_points(self, *, all_settled: bool = False) -> None:
        """Hold the index's files against the store: what does not wait to be indexed agrees point for point."""
        wanted = {(row["tenant_id"], row["memory_id"]): row for row in await self.pool.fetch(_WANTED)}
        waiting = {(row["tenant_id"], row["memory_id"]) for row in await self.pool.fetch(_WAITING)}
        if all_settled and waiting:
            self.tally.lapses.append(f"{len(waiting)} memories wait to be indexed")
        index = await EdgeIndex.open(self.index, WordLlama.identity)
        points = Counter([((tenant, id_), version) async for tenant, id_, version in index.stored()])
        await index.close()
        must = Counter({(key, row["version"]): row["chunks"] for key, row in wanted.items()})
        for (key, version), number in ((must - points) | (points - must)).items():
            if key not in waiting:
                held = {v: n for (k, v), n in points.items() if k == key}
                self.tally.lapses.append(f"{key} version {version}: {number} points differ, held are {held}")
        self.tally.compared += points.total()

    async def _start(self) -> None:
        process = self.service.process
        if process is not None and process.returncode is None:
            return
        began = perf_counter()
        await self.service.start()
        self.tally.restarts_s.append(perf_counter() - began)

    async def _end(self) -> None:
        if process := self.service.process:
            process.send_signal(signal.SIGKILL)
            await process.wait()

    async def _kill_amid(self, awaited: Callable[[], Awaitable[None]]) -> None:
        writing = [asyncio.create_task(writer.work()) for writer in self.writers]
        await awaited()
        await self._end()
        self.tally.amid_copies += len(list(self.index.glob("shard-*"))) > 1
        await asyncio.wait(writing, timeout=_ANSWERS_ARRIVE_S)
        for task in writing:
            task.cancel()
        for outcome in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(outcome, Exception):
                self.tally.lapses.append(repr(outcome))

    async def _kill_a_start(self) -> None:
        """Writers call from the first moment on, as they would in a deployment."""
        before = self.service.process
        starting = asyncio.create_task(self.service.start())
        await eventually(lambda: self.service.process is not before)
        await self._kill_amid(lambda: asyncio.sleep(self.rng.uniform(0, self._start_takes_s)))
        try:
            await starting
        except StackError:
            return

    @property
    def _start_takes_s(self) -> float:
        return self.tally.restarts_s[-1] if self.tally.restarts_s else _FIRST_START_S

    async def _some_time(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, self.writing_s))

    async def _copying(self) -> None:
        """Wait until the engine copies its points into a new shard."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_COPY_WITHIN_S):
                while len(list(self.index.glob("shard-*"))) < 2:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(self.rng.uniform(0, 0.02))

    async def _is_caught_up(self) -> bool:
        return not await self.pool.fetchval("SELECT count(*) FROM memory.index_outbox")

    def _note(self, writer: Writer, lapses: Sequence[str]) -> None:
        self.tally.lapses += [f"{writer.tenant}/{writer.caller.user_id}: {lapse}" for lapse in lapses]

    async def _read(self, writer: Writer, seen: dict[str, Seen]) -> list[str]:
        """Ask in every other way: list, search, get, history."""
        journal, caller = writer.journal, writer.caller
        listed = await self._listed(writer)
        current = {id_ for id_, one in seen.items() if one.status != "superseded"}
        lapses = [f"{id_} is not listed" for id_ in current - listed] + [
            f"{id_} listed" for id_ in journal.gone & listed
        ]
        active = sorted(id_ for id_ in current if seen[id_].status == "active")
        for memory_id in self.rng.sample(active, min(_SAMPLE, len(active))):
            told = await self.ask(subjects.MEMORY_GET, ById(caller=caller, id=memory_id), MemoryView)
            if told.text != seen[memory_id].text:
                lapses.append(f"{memory_id} is got with another text")
            if memory_id not in await self._found(writer, told.text[:400]):
                lapses.append(f"{memory_id} is not found")
        for memory_id in self.rng.sample(sorted(journal.gone), min(_SAMPLE, len(journal.gone))):
            for subject, reply in ((subjects.MEMORY_GET, MemoryView), (subjects.MEMORY_HISTORY, History)):
                try:
                    await self.ask(subject, ById(caller=caller, id=memory_id), reply)
                    lapses.append(f"{memory_id} is got although it is gone")
                except NotFound:
                    continue
        gone = self.rng.sample(sorted(journal.gone_marks), min(_SAMPLE, len(journal.gone_marks)))
        told_again = [text for text in (await self._found(writer, " ".join(gone))).values() if journal.told(text)]
        return lapses + [f"found although gone: {text[:60]!r}" for text in told_again]

    async def _listed(self, writer: Writer) -> set[str]:
        found: set[str] = set()
        before: str | None = None
        while True:
            asked = ListMemories(caller=writer.caller, limit=200, before=before)
            page = await self.ask(subjects.MEMORY_LIST, asked, MemoryPage)
            found |= {item.id for item in page.items}
            before = page.next_before
            if before is None:
                return found

    async def _found(self, writer: Writer, query: str) -> dict[str, str]:
        if not query:
            return {}
        asked = Search(caller=writer.caller, query=query, k=100, token_budget=100_000)
        told = await self.ask(subjects.MEMORY_SEARCH, asked, Recalled)
        return {hit.memory.id: hit.memory.text for hit in told.hits}

    async def _look_into_tables(self) -> None:
        """Nothing that is gone stands in a table, and the accounts add up."""
        rows = await self.pool.fetch(_TEXTS)
        ids = {row["memory_id"] for row in rows}
        for writer in self.writers:
            journal = writer.journal
            self._note(writer, [f"{id_} is in a table" for id_ in journal.gone & ids])
            texts = [row["text"] for row in rows if row["text"] and journal.told(row["text"])]
            self._note(writer, [f"a table tells {text[:60]!r}" for text in texts])
        self.tally.lapses += [f"the account is off by {dict(row)}" for row in await self.pool.fetch(_ACCOUNTS)]
