"""The deployed nats.conf gives each service the subjects it needs and refuses the others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from caisson.common import streams, subjects
from caisson.common.ids import Ids, RunId, TenantId
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually

RUN = Ids(tenant=TenantId("acme"), run=RunId("run_1"))
QUEUED = str(subjects.event("run.queued", RUN))
FINISHED = str(subjects.event("run.finished", RUN))
OUTPUT = str(subjects.step_output(RUN))
CONTEXT = "$KV.contexts.req_1"
CREATE = "$JS.API.CONSUMER.CREATE.EVENTS"
REMEMBER = str(subjects.MEMORY_REMEMBER)


class Connection:
    """A connection of one service that remembers what the server refused and what arrived."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.received: list[bytes] = []
        self.client = Client()

    async def open(self, server: EmbeddedNats, user: str, *, password_of: str | None = None) -> None:
        async def note(error: Exception) -> None:
            self.refused.append(str(error).lower())

        await self.client.connect(
            server.url,
            user=user,
            password=server.passwords[password_of or user],
            inbox_prefix=f"_INBOX_{user}".encode(),
            error_cb=note,
            allow_reconnect=False,
        )

    async def listen(self, subject: str, *, queue: str = "") -> None:
        async def receive(message: Msg) -> None:
            self.received.append(message.data)

        await self.client.subscribe(subject, queue=queue, cb=receive)
        await self.client.flush()


@asynccontextmanager
async def connected(server: EmbeddedNats, user: str) -> AsyncIterator[Connection]:
    connection = Connection()
    await connection.open(server, user)
    try:
        yield connection
    finally:
        await connection.client.close()


@pytest.fixture
async def gateway(nats: EmbeddedNats) -> AsyncIterator[Connection]:
    async with connected(nats, "gateway") as connection:
        await streams.declare(connection.client.jetstream())
        yield connection


@pytest.fixture
async def runner(nats: EmbeddedNats) -> AsyncIterator[Connection]:
    async with connected(nats, "runner") as connection:
        yield connection


@pytest.fixture
async def proxy(nats: EmbeddedNats) -> AsyncIterator[Connection]:
    async with connected(nats, "proxy") as connection:
        yield connection


PUBLISH_REFUSED = [
    ("runner", QUEUED, "a runner states no facts"),
    ("runner", FINISHED, "a runner states no facts"),
    ("runner", CONTEXT, "a runner cannot plant a context"),
    ("runner", "_INBOX_gateway.x.y", "a runner answers nobody"),
    ("runner", "_INBOX_runner.x.y", "nor another runner"),
    ("runner", "$JS.API.DIRECT.GET.KV_contexts.$KV.contexts.req_1", "a runner reads no context"),
    ("runner", "$JS.API.STREAM.MSG.GET.KV_contexts", "a runner reads no context"),
    ("runner", "$JS.API.CONSUMER.CREATE.KV_contexts", "a runner reads no context"),
    ("runner", "$JS.API.STREAM.INFO.EVENTS", "a runner has no JetStream at all"),
    ("proxy", CONTEXT, "the proxy only reads contexts"),
    ("proxy", QUEUED, "the proxy states facts about itself only"),
    ("proxy", "caisson.rpc.ledger.claim.-.-.-.-.-", "the proxy works on no runs"),
    ("proxy", OUTPUT, "the proxy has no output"),
    ("proxy", "$JS.API.CONSUMER.CREATE.EVENTS", "the proxy does not read events"),
    ("proxy", "$JS.API.STREAM.PURGE.KV_contexts", "the proxy deletes nothing"),
    ("gateway", "caisson.rpc.ledger.claim.-.-.-.-.-", "the gateway answers these requests and makes none"),
    ("gateway", OUTPUT, "output comes from runners"),
    ("memory", QUEUED, "memory states facts about memories only"),
    ("memory", REMEMBER, "memory asks nobody"),
    ("memory", "caisson.rpc.ledger.claim.-.-.-.-.-", "memory asks nobody"),
    ("memory", CONTEXT, "memory knows no contexts"),
    ("memory", "$JS.API.STREAM.INFO.EVENTS", "memory manages no streams"),
    (
        "memory",
        f"{CREATE}.memory-sessions.caisson.evt.run.queued.>",
        "memory reads ends of sessions only",
    ),
    ("memory", f"{CREATE}.memory-sessions", "a consumer without a filter reads everything"),
    ("memory", CREATE, "and so does one without a name"),
    ("memory", f"{CREATE}.other.caisson.evt.session.deleted.>", "one consumer is enough"),
    ("memory", "$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.memory-sessions", "the old way has no filter in its subject"),
    ("memory", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.other", "another's consumer is another's"),
    ("memory", "$JS.API.CONSUMER.DELETE.EVENTS.memory-sessions", "memory deletes nothing"),
    ("memory", str(subjects.event("session.deleted", RUN)), "memory states facts about memories only"),
    ("proxy", f"{CREATE}.memory-sessions.caisson.evt.session.deleted.>", "the proxy does not read events"),
    ("runner", REMEMBER, "a runner has no memories"),
    ("proxy", REMEMBER, "the proxy remembers nothing"),
]

SUBSCRIBE_REFUSED = [
    ("runner", "_INBOX_gateway.>", "another service's answers"),
    ("runner", "_INBOX_proxy.>", "another service's answers"),
    ("runner", "_INBOX.>", "the default prefix"),
    ("runner", "$KV.contexts.>", "contexts as they are written"),
    ("runner", "caisson.evt.>", "events that are no doorbell"),
    ("runner", "caisson.rpc.ledger.>", "other runners' reports and grants"),
    ("runner", "caisson.out.>", "other runners' output"),
    ("runner", ">", "everything"),
    ("proxy", "$KV.contexts.>", "contexts come through the consumer"),
    ("proxy", "caisson.out.>", "output"),
    ("proxy", "_INBOX_runner.>", "another service's answers"),
    ("gateway", "caisson.rpc.ledger.>", "requests outside the queue group"),
    ("gateway", "_INBOX_runner.>", "another service's answers"),
    ("gateway", "caisson.rpc.memory.>", "requests to memory"),
    ("memory", "caisson.rpc.memory.>", "requests outside the queue group"),
    ("memory", "caisson.evt.>", "events"),
    ("memory", "_INBOX_gateway.>", "another service's answers"),
]


@pytest.mark.parametrize(("user", "subject", "reason"), PUBLISH_REFUSED)
async def test_a_service_cannot_publish_what_is_not_its_own(
    nats: EmbeddedNats, user: str, subject: str, reason: str
) -> None:
    async with connected(nats, user) as connection:
        await connection.client.publish(subject, b"{}")
        await connection.client.flush()
        assert await eventually(lambda: connection.refused), reason
        assert "permissions violation for publish" in connection.refused[0]


@pytest.mark.parametrize(("user", "subject", "reason"), SUBSCRIBE_REFUSED)
async def test_a_service_cannot_listen_to_what_is_not_its_own(
    nats: EmbeddedNats, user: str, subject: str, reason: str
) -> None:
    async with connected(nats, user) as connection:
        await connection.listen(subject)
        assert await eventually(lambda: connection.refused), reason
        assert "permissions violation for subscription" in connection.refused[0]


@pytest.mark.parametrize("other", ["gateway", "proxy"])
async def test_the_password_of_one_service_does_not_open_another(nats: EmbeddedNats, other: str) -> None:
    intruder = Connection()
    with pytest.raises(NatsError, match="Authorization Violation"):
        await intruder.open(nats, other, password_of="runner")
    await intruder.client.close()


async def test_a_runner_asks_the_gateway_and_gets_its_answer(gateway: Connection, runner: Connection) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"granted")

    await gateway.client.subscribe(subjects.LEDGER_CLAIM.pattern, queue="gateway", cb=answer)
    await gateway.client.flush()

    async def ask() -> bytes | None:
        # The server may pick a queue member of an earlier test whose connection is just closing.
        with suppress(NoRespondersError):
            return (await runner.client.request(str(subjects.LEDGER_CLAIM), b"{}", timeout=5)).data
        return None

    assert await eventually(ask) == b"granted"
    assert not gateway.refused + runner.refused


async def test_the_gateway_asks_memory_which_answers_and_tells_facts(nats: EmbeddedNats, gateway: Connection) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"remembered")

    async with connected(nats, "memory") as memory:
        await memory.client.subscribe(subjects.MEMORY_REMEMBER.pattern, queue="memory", cb=answer)
        await memory.client.flush()
        assert (await gateway.client.request(REMEMBER, b"{}", timeout=5)).data == b"remembered"
        fact = str(subjects.event("memory.remembered", RUN))
        ack = await memory.client.jetstream().publish(fact, b"{}", stream=subjects.EVENTS_STREAM)
        assert ack.stream == subjects.EVENTS_STREAM
        assert not gateway.refused + memory.refused


async def test_doorbells_and_live_output_reach_their_readers(gateway: Connection, runner: Connection) -> None:
    await runner.listen(subjects.RUN_QUEUED_PATTERN)
    await runner.listen(subjects.CANCEL_WAKE_PATTERN)
    await gateway.listen(subjects.run_output_pattern(RUN))
    ack = await gateway.client.jetstream().publish(QUEUED, b"queued", stream=subjects.EVENTS_STREAM)
    await runner.client.publish(OUTPUT, b"chunk")
    assert ack.stream == subjects.EVENTS_STREAM
    await eventually(lambda: runner.received == [b"queued"] and gateway.received == [b"chunk"])
    assert not gateway.refused + runner.refused


async def test_the_proxy_watches_and_reads_contexts(gateway: Connection, proxy: Connection) -> None:
    contexts = await gateway.client.jetstream().key_value(subjects.CONTEXTS_BUCKET)
    await contexts.put("req_1", b"first")
    mirror = await proxy.client.jetstream().key_value(subjects.CONTEXTS_BUCKET)
    watcher: Any = await mirror.watchall()
    assert (await watcher.updates(timeout=5)).value == b"first"
    assert await watcher.updates(timeout=5) is None, "the watcher says that it has caught up"
    await contexts.put("req_1", b"second")
    assert (await watcher.updates(timeout=5)).value == b"second"
    assert (await mirror.get("req_1")).value == b"second"
    await watcher.stop()
    assert not gateway.refused + proxy.refused


async def test_a_proxy_reports_facts_about_itself(gateway: Connection, proxy: Connection) -> None:
    subject = str(subjects.event("proxy.denied", RUN))
    ack = await proxy.client.jetstream().publish(subject, b"{}", stream=subjects.EVENTS_STREAM)
    assert ack.stream == subjects.EVENTS_STREAM
    assert not proxy.refused
