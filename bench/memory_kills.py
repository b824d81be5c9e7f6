"""A hundred kills of a memory service under writes: nothing acknowledged is lost, nothing deleted returns.

Six users of three tenants remember, correct, supersede, consolidate, delete and have themselves erased. The service
is killed while they do, while it starts, and while its index is copied; after each kill the index's files are held
against the store, after every fifth everything that callers were told against what the service tells.
"""

import random
import secrets
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Figure, percentile
from bench.memory_plane import MemoryPlane, memory_plane
from caisson.common.messages import Message
from caisson.common.subjects import Subject
from tests.support.memory_kills import SETTINGS, Moment, Ordeal
from tests.support.memory_writers import Writer

KILLS = 100
EXAMINED_EVERY = 5
TENANTS = ("acme", "acme0", "globex")
PER_TENANT = 2
TURNS = (Moment.WRITES, Moment.START, Moment.WRITES, Moment.COPY)


def run(kills: int = KILLS) -> list[Figure]:
    """Return the figures."""
    return uvloop.run(_measure(kills))


async def _measure(kills: int) -> list[Figure]:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as folder:
        async with memory_plane(Path(folder), settings=SETTINGS) as plane:
            ordeal = _ordeal(plane, random.Random(seed))
            try:
                for number, moment in enumerate(islice(cycle(TURNS), kills), start=1):
                    await ordeal.kill(moment)
                    if number % EXAMINED_EVERY == 0 or number == kills:
                        await ordeal.examine()
            finally:
                await ordeal.service.stop()
            mended = plane.folder.log("memory").read_text().count("reconcile.mended")
    return _figures(ordeal, mended)


def _ordeal(plane: MemoryPlane, rng: random.Random) -> Ordeal:
    async def ask(subject: Subject, request: Message, reply: type[Any]) -> Any:
        return await plane.ask(subject, request, reply)

    writers = [
        Writer(ask=ask, tenant=tenant, name=f"user{number}", rng=random.Random(rng.random()))
        for tenant in TENANTS
        for number in range(PER_TENANT)
    ]
    return Ordeal(
        service=plane.service(),
        index=plane.folder.index("memory"),
        pool=plane.pool,
        ask=ask,
        writers=writers,
        rng=rng,
    )


def _figures(ordeal: Ordeal, mended: int) -> list[Figure]:
    tally, journals = ordeal.tally, [writer.journal for writer in ordeal.writers]
    for lapse in tally.lapses[:20]:
        print(lapse)
    restarts = tally.restarts_s
    return [
        Figure(name="memory_kills", value=tally.kills.total(), unit="kills"),
        Figure(name="memory_kills_amid_starts", value=tally.kills[Moment.START], unit="kills"),
        Figure(name="memory_kills_amid_copies", value=tally.amid_copies, unit="kills", bar=1, wanted="at least"),
        Figure(
            name="memory_kills_acknowledged",
            value=sum(writer.acknowledged for writer in ordeal.writers),
            unit="requests",
        ),
        Figure(name="memory_kills_unanswered", value=tally.unanswered, unit="requests"),
        Figure(name="memory_kills_kept", value=sum(len(journal.kept) for journal in journals), unit="memories"),
        Figure(name="memory_kills_deleted", value=sum(len(journal.gone) for journal in journals), unit="memories"),
        Figure(name="memory_kills_points_compared", value=tally.compared, unit="points"),
        Figure(name="memory_kills_drift_mended", value=mended, unit="memories", bar=0),
        Figure(name="memory_kills_lapses", value=len(tally.lapses), unit="lapses", bar=0),
        Figure(name="memory_restart_p50_s", value=percentile(restarts, 50), unit="s"),
        Figure(name="memory_restart_p95_s", value=percentile(restarts, 95), unit="s"),
    ]
