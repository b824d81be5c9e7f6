"""The whole service as a process, with the model and the engine that it comes with."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import psutil
import pytest

from caisson.common import subjects
from caisson.common.envelope import Envelope, open_envelope
from caisson.common.errors import NotFound
from caisson.common.memories import ById, Caller, MemoryView, Receipt, ReceiptOf
from caisson.common.postgres import Pool, connect_pool
from caisson.stack.nats import EmbeddedNats
from caisson.stack.service_process import ServiceProcess
from tests.support.event_catalogue import documented_events
from tests.support.eventually import eventually
from tests.support.gateway import create_database
from tests.support.memory_process import Asking, Ground, asking


@pytest.fixture(scope="module")
async def ground(postgres_url: str, nats: EmbeddedNats, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    url = await create_database(postgres_url)
    return Ground(folder=tmp_path_factory.mktemp("memory"), database_url=url, nats=nats)


@pytest.fixture(scope="module")
async def service(ground: Ground, gateway_bus: Asking) -> AsyncIterator[ServiceProcess]:
    process = ground.service()
    await process.start()
    yield process
    await process.stop()


@pytest.fixture(scope="module")
async def gateway_bus(nats: EmbeddedNats) -> AsyncIterator[Asking]:
    async with asking(nats) as bus:
        yield bus


@pytest.fixture(scope="module")
async def database(ground: Ground, service: ServiceProcess) -> AsyncIterator[Pool]:
    pool = await connect_pool(ground.database_url, application="tests")
    yield pool
    await pool.close()


@pytest.fixture
def caller() -> Caller:
    return Caller(tenant_id=f"tenant {uuid4().hex[:8]}", user_id="ana", scopes=[])


async def test_what_is_remembered_is_found_and_what_is_forgotten_is_not(
    gateway_bus: Asking, service: ServiceProcess, caller: Caller
) -> None:
    [tea, _] = await gateway_bus.remember(caller, "Ana prefers tea over coffee", "The deploy port is 8080")
    assert (await gateway_bus.search(caller, "what does Ana like to drink"))[0] == "Ana prefers tea over coffee"
    receipt = await gateway_bus.delete(caller, tea.id)
    assert (receipt.deleted, receipt.vectors, receipt.complete) == ([tea.id], 1, True)
    assert "Ana prefers tea over coffee" not in await gateway_bus.search(caller, "what does Ana like to drink")
    with pytest.raises(NotFound):
        await gateway_bus.call(subjects.MEMORY_GET, ById(caller=caller, id=tea.id or ""), MemoryView)


async def test_facts_reach_the_bus_with_ids_and_without_texts(
    gateway_bus: Asking, service: ServiceProcess, database: Pool, caller: Caller
) -> None:
    received: list[Envelope] = []

    def receive(subject: str, body: bytes) -> None:
        parsed, envelope = open_envelope(subject, body)
        if envelope.tenant_id == caller.tenant_id:
            assert parsed.ids == envelope.ids
            received.append(envelope)

    listening = await gateway_bus.bus.listen("caisson.evt.memory.>", receive)
    [old] = await gateway_bus.remember(caller, "Ana lives in Oslo", subject="Ana", attribute="city")
    [new] = await gateway_bus.remember(caller, "Ana lives in Rome", subject="Ana", attribute="city")
    await gateway_bus.search(caller, "where does Ana live")
    await gateway_bus.delete(caller, new.id)
    await eventually(lambda: len(received) == 4)
    await listening.unsubscribe()
    told = {envelope.type: envelope.data for envelope in received}
    assert told["memory.remembered"]["id"] == old.id
    assert told["memory.superseded"] == {"id": new.id, "layer": "semantic", "supersedes": [old.id]}
    assert told["memory.recalled"]["ids"] == [new.id]
    assert told["memory.forgotten"] == {"ids": [new.id]}
    assert all(data.keys() <= documented_events()[type_] for type_, data in told.items())
    assert "Ana lives" not in json.dumps([envelope.model_dump(mode="json") for envelope in received])
    unsent = "SELECT count(*) FROM memory.events WHERE tenant_id = $1"
    await eventually(lambda: _is_zero(database, unsent, caller.tenant_id))


async def test_another_embedder_is_refused_at_start_naming_both(ground: Ground, service: ServiceProcess) -> None:
    said = await ground.refuse(MEMORY_EMBEDDER="wordllama", MEMORY_INDEX_DIR=str(ground.folder / "another"))
    assert "384 dimensions" in said
    assert "256 dimensions" in said
    assert "--reembed" in said


async def test_readiness_and_metrics_tell_of_every_part(service: ServiceProcess) -> None:
    async with httpx.AsyncClient(base_url=service.addresses["admin"], trust_env=False) as client:
        ready = await client.get("/readyz")
        assert set(ready.json()["checks"]) == {
            *("database", "bus", "index", "embedder", "index backlog", "unsent events"),
            *("index relay", "fact relay", "index state", "optimizing", "sweep", "reconcile", "consolidate"),
            "session ends",
        }
        metrics = (await client.get("/metrics")).text
    assert "caisson_memory_index_oldest_seconds" in metrics
    assert "caisson_memory_remembered_total" in metrics
    assert service.process is not None
    assert psutil.Process(service.process.pid).memory_info().rss < 600 << 20


async def test_a_killed_service_indexes_after_its_restart_what_it_had_committed(
    ground: Ground, gateway_bus: Asking, service: ServiceProcess, database: Pool, caller: Caller
) -> None:
    """A row whose points were lost with the process is what a kill between commit and upsert leaves behind."""
    await gateway_bus.remember(caller, "Ana prefers tea over coffee")
    assert service.process is not None
    service.process.send_signal(signal.SIGKILL)
    await service.process.wait()
    await database.execute(
        "INSERT INTO memory.index_outbox (tenant_id, memory_id, leased_until)"
        " SELECT tenant_id, memory_id, now() + interval '1 hour' FROM memory.memories WHERE tenant_id = $1",
        caller.tenant_id,
    )
    await service.start()
    waiting = "SELECT count(*) FROM memory.index_outbox WHERE tenant_id = $1"
    await eventually(lambda: _is_zero(database, waiting, caller.tenant_id), within_s=10)
    assert await gateway_bus.search(caller, "what does Ana drink") == ["Ana prefers tea over coffee"]


async def test_a_service_killed_between_a_deletion_and_its_answer_has_the_receipt_when_it_is_back(
    gateway_bus: Asking, service: ServiceProcess, database: Pool, caller: Caller
) -> None:
    [tea] = await gateway_bus.remember(caller, "Ana prefers tea over coffee")
    assert service.process is not None
    (engine,) = psutil.Process(service.process.pid).children()
    engine.suspend()
    deletion = asyncio.create_task(gateway_bus.delete(caller, tea.id))
    await eventually(
        lambda: _is_zero(database, "SELECT count(*) FROM memory.memories WHERE tenant_id = $1", caller.tenant_id)
    )
    assert not deletion.done()
    service.process.send_signal(signal.SIGKILL)
    engine.kill()
    await service.process.wait()
    deletion.cancel()
    await service.start()

    async def is_complete() -> bool:
        asked = ReceiptOf(caller=caller, id=tea.id or "")
        receipt = await gateway_bus.call(subjects.MEMORY_RECEIPT, asked, Receipt)
        assert (receipt.deleted, receipt.count) == ([tea.id], 1)
        return receipt.complete

    await eventually(is_complete, within_s=10)


async def _is_zero(database: Pool, sql: str, tenant: str) -> bool:
    return bool(await database.fetchval(sql, tenant) == 0)
