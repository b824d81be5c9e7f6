"""A fact for a durable consumer is worked on until it is done: by one of the replicas, whoever is away."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from caisson.common import metrics, streams, subjects
from caisson.common.bus import Bus
from caisson.common.durable import DurableConsumer
from caisson.common.envelope import Envelope
from caisson.common.errors import Unavailable
from caisson.common.health import Progress
from caisson.common.ids import Ids, SessionId, TenantId, UserId
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import EVENTS_STREAM, SESSION_DELETED
from caisson.stack.nats import SERVICES, EmbeddedNats
from tests.support.eventually import eventually

NAME = "memory-sessions"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    """A server whose streams nobody has declared yet."""
    nats = EmbeddedNats(tmp_path, passwords={name: secrets.token_hex() for name in SERVICES})
    await nats.start()
    yield nats
    await nats.stop()


@asynccontextmanager
async def connected(server: EmbeddedNats, service: str) -> AsyncIterator[Bus]:
    settings = ServiceSettings(nats_url=server.url, nats_user=service, nats_password=server.passwords[service])
    bus = Bus(settings, service=service, on_closed=lambda: None)
    await bus.start()
    yield bus
    await bus.stop()


@pytest.fixture
async def telling(server: EmbeddedNats) -> AsyncIterator[Bus]:
    async with connected(server, "gateway") as bus:
        yield bus


@pytest.fixture
async def memory(server: EmbeddedNats) -> AsyncIterator[Bus]:
    async with connected(server, "memory") as bus:
        yield bus


class Replica:
    """One process's consumer, with the service's own rights; it notes what it was given."""

    def __init__(self, bus: Bus, work: Callable[[Envelope], Awaitable[None]] | None = None) -> None:
        self.begun: list[str] = []
        self.progress = Progress("consumer", limit_s=20)
        self._work = work
        self.consumer = DurableConsumer(bus, SESSION_DELETED, name=NAME, work=self._note, progress=self.progress)

    async def _note(self, fact: Envelope) -> None:
        self.begun.append(fact.session_id or "")
        if self._work is not None:
            await self._work(fact)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Replica"]:
        task = asyncio.create_task(self.consumer.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def is_ready(self) -> bool:
        try:
            await self.progress.check()
        except Unavailable:
            return False
        return True


async def tell(bus: Bus, session: str) -> None:
    ids = Ids(tenant=TenantId("acme.com"), user=UserId("u 1"), session=SessionId(session))
    fact = Envelope(
        id=f"{session}:deleted",
        type="session.deleted",
        tenant_id=ids.tenant,
        user_id=ids.user,
        session_id=session,
        occurred_at=datetime.now(UTC),
        data={},
    )
    subject = subjects.event("session.deleted", ids)
    await bus.publish_event(subject, fact.model_dump_json().encode(), message_id=secrets.token_hex())


async def nothing_is_left(telling: Bus) -> bool:
    info = await telling.jetstream.consumer_info(EVENTS_STREAM, NAME)
    return not info.num_pending and not info.num_ack_pending


async def test_a_consumer_waits_for_its_stream_and_outlives_its_loss(telling: Bus, memory: Bus) -> None:
    async with Replica(memory).running() as replica:
        assert not await replica.is_ready(), "and says so"
        await streams.declare(telling.jetstream)
        await tell(telling, "ses_1")
        await eventually(lambda: replica.begun == ["ses_1"], within_s=10)
        assert await replica.is_ready()
        await telling.jetstream.delete_stream(EVENTS_STREAM)
        await streams.declare(telling.jetstream)
        await tell(telling, "ses_2")
        await eventually(lambda: replica.begun == ["ses_1", "ses_2"], within_s=20)
        await eventually(lambda: nothing_is_left(telling))


async def test_what_was_told_while_the_service_was_away_is_worked_off_once_by_its_replicas(
    server: EmbeddedNats, telling: Bus, memory: Bus
) -> None:
    await streams.declare(telling.jetstream)
    await memory.jetstream.add_consumer(EVENTS_STREAM, streams.durable(NAME, SESSION_DELETED))
    told = [f"ses_{number}" for number in range(1, 41)]
    for session in told:
        await tell(telling, session)
    async with (
        connected(server, "memory") as bus,
        Replica(memory).running() as one,
        Replica(bus).running() as two,
    ):
        await eventually(lambda: len(one.begun) + len(two.begun) >= len(told), within_s=20)
        await eventually(lambda: nothing_is_left(telling))
        assert sorted(one.begun + two.begun) == sorted(told)


async def test_work_that_fails_comes_again_and_holds_nothing_else_up(telling: Bus, memory: Bus) -> None:
    await streams.declare(telling.jetstream)
    failures = [Unavailable("the database is away"), KeyError("a bug")]

    async def work(fact: Envelope) -> None:
        if fact.session_id == "ses_bad" and failures:
            raise failures.pop(0)

    async with Replica(memory, work).running() as replica:
        await tell(telling, "ses_bad")
        await tell(telling, "ses_good")
        await eventually(lambda: replica.begun[:2] == ["ses_bad", "ses_good"], within_s=10)
        await eventually(lambda: replica.begun == ["ses_bad", "ses_good", "ses_bad", "ses_bad"], within_s=15)
        await eventually(lambda: nothing_is_left(telling))


async def test_work_that_a_stopping_replica_leaves_is_another_ones_at_once(
    server: EmbeddedNats, telling: Bus, memory: Bus
) -> None:
    await streams.declare(telling.jetstream)

    async def endless(_: Envelope) -> None:
        await asyncio.Event().wait()

    async with Replica(memory, endless).running() as stopping:
        await tell(telling, "ses_1")
        await eventually(lambda: stopping.begun == ["ses_1"], within_s=10)
    async with Replica(memory).running() as other:
        await eventually(lambda: other.begun == ["ses_1"], within_s=10)


async def test_a_message_that_is_no_fact_is_refused_once_and_counted(telling: Bus, memory: Bus) -> None:
    await streams.declare(telling.jetstream)
    refused = metrics.MISADDRESSED.labels(service=NAME)._value
    before = refused.get()
    ids = Ids(tenant=TenantId("acme"), user=UserId("u"), session=SessionId("ses_1"))
    await telling.publish_event(subjects.event("session.deleted", ids), b"{}", message_id="1")
    async with Replica(memory).running() as replica:
        await tell(telling, "ses_2")
        await eventually(lambda: replica.begun == ["ses_2"], within_s=10)
        await eventually(lambda: nothing_is_left(telling))
    assert refused.get() == before + 1
