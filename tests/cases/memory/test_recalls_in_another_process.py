"""Two memory services as processes on one store: what one changes, a recall that the other keeps warm misses at once.

Each has an index and a bus of its own, so that it is known who answers, and nothing but the store tells them of each
other: the points of the one that recalls stay where they are.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from caisson.common import subjects
from caisson.common.memories import Caller, MemoryView, OfUser, PatchMemory, Provenance, Receipt
from caisson.common.recalls import Recalled, Search
from caisson.stack.nats import SERVICES, EmbeddedNats
from tests.support.gateway import create_database
from tests.support.memory_plane import new_tenant
from tests.support.memory_process import Asking, Ground, asking

QUERY, TEXT = "what does Ana drink", "Ana drinks tea with milk"
SCOPES = ["team:a", "user:ana"]
ALONE = {"MEMORY_SWEEP_S": "3600", "MEMORY_RELAY_POLL_S": "3600"}

Change = Callable[[Asking, Caller, str, str], Awaitable[object]]


@pytest.fixture(scope="module")
async def services(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Asking]]:
    """Who asks the first service, and who asks the second."""
    url = await create_database(postgres_url)
    async with AsyncExitStack() as stack:
        buses = []
        for name in ("first", "second"):
            folder = tmp_path_factory.mktemp(name)
            nats = EmbeddedNats(folder / "nats", passwords={user: secrets.token_hex() for user in SERVICES})
            await nats.start()
            stack.push_async_callback(nats.stop)
            buses.append(await stack.enter_async_context(asking(nats)))
            service = Ground(folder=folder, database_url=url, nats=nats).service(**ALONE)
            await service.start()
            stack.push_async_callback(service.stop)
        yield buses


async def _delete(elsewhere: Asking, caller: Caller, id_: str, _: str) -> object:
    return await elsewhere.delete(caller, id_)


async def _delete_source(elsewhere: Asking, caller: Caller, _: str, source: str) -> object:
    return await elsewhere.delete(caller, source)


async def _erase(elsewhere: Asking, caller: Caller, _: str, __: str) -> object:
    return await elsewhere.call(subjects.MEMORY_ERASE_USER, OfUser(caller=caller, user_id="ana"), Receipt)


async def _supersede(elsewhere: Asking, caller: Caller, _: str, __: str) -> object:
    return await elsewhere.remember(caller, "Ana has given it up", subject="Ana", attribute="drink", scopes=SCOPES)


async def _expire(elsewhere: Asking, caller: Caller, id_: str, _: str) -> object:
    patch = PatchMemory(caller=caller, id=id_, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    return await elsewhere.call(subjects.MEMORY_PATCH, patch, MemoryView)


async def _move(elsewhere: Asking, caller: Caller, _: str, __: str) -> object:
    return await elsewhere.remember(caller, TEXT, external_id="drink", scopes=["user:ana"])


CHANGES: list[tuple[Change, str]] = [
    (_delete, "deleted"),
    (_delete_source, "deleted with its source"),
    (_erase, "erased with its user"),
    (_supersede, "superseded"),
    (_expire, "expired"),
    (_move, "moved out of the scope"),
]


@pytest.mark.parametrize(("change", "what"), CHANGES, ids=[what for _, what in CHANGES])
async def test_a_warm_recall_misses_what_another_process_changed(
    services: list[Asking], change: Change, what: str
) -> None:
    """M18. Delete, erase, supersede, expire, change scope, delete the source: the other process misses the row."""
    elsewhere, here = services
    tenant = new_tenant()
    ana, bo = [Caller(tenant_id=tenant, user_id=user, scopes=["team:a"]) for user in ("ana", "bo")]
    [source] = await here.remember(
        ana,
        "At breakfast Ana said what she likes",
        layer="episodic",
        outcome="ok",
        provenance=Provenance(kind="run", run_id="run_1"),
    )
    said = Provenance(kind="run", run_id="run_1", source=source.id)
    fact = {"subject": "Ana", "attribute": "drink", "external_id": "drink", "scopes": SCOPES}
    [stored] = await here.remember(ana, TEXT, provenance=said, **fact)
    for _ in range(3):
        told = await here.call(subjects.MEMORY_SEARCH, Search(caller=bo, query=QUERY), Recalled)
        assert TEXT in [hit.memory.text for hit in told.hits]
    assert told.diagnostics.cached
    await change(elsewhere, ana, stored.id or "", source.id or "")
    for asked in (here, elsewhere):
        assert TEXT not in await asked.search(bo, QUERY), what
