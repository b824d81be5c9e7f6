"""The bus: FastStream and nats-py with the defaults that lose messages or freeze processes switched off.

Invariant: a request gets exactly one typed reply or a typed error; an event counts as published only with a PubAck.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors
import nats.js.errors
import structlog
from faststream.nats import NatsBroker, NatsMessage
from faststream.security import SASLPlaintext
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from opentelemetry import trace

from caisson.common import tracing
from caisson.common.answering import answer, too_large
from caisson.common.errors import PayloadTooLarge, TimedOut, Unavailable
from caisson.common.messages import Message
from caisson.common.replies import ReplyT, open_reply
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import EVENTS_STREAM, Subject

RequestT = TypeVar("RequestT", bound=Message)

_RECONNECT_WAIT_S = 0.5
_PUBLISH_TIMEOUT_S = 2.0
_FINISHED_WITHIN_S = 15.0
_MAX_HANDLERS = 64
_PENDING_BYTES = 16 << 20

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


class Bus:
    """One connection of one service to NATS."""

    def __init__(self, settings: ServiceSettings, *, service: str, on_closed: Callable[[], None]) -> None:
        self._service = service
        self._on_closed = on_closed
        self._stopping = False
        self._answering: set[asyncio.Task[None]] = set()
        self._broker = NatsBroker(
            settings.nats_url,
            name=service,
            security=SASLPlaintext(
                username=settings.nats_user, password=settings.nats_password.get_secret_value(), use_ssl=False
            ),
            inbox_prefix=f"_INBOX_{settings.nats_user}",
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_WAIT_S,  # type: ignore[arg-type]  # nats-py sleeps this; a float works
            pending_size=_PENDING_BYTES,
            ping_interval=5,
            max_outstanding_pings=3,
            closed_cb=self._closed,
            error_cb=self._connection_error,
            apply_types=False,
            logger=None,
        )

    async def start(self) -> None:
        """Connect (waiting for the server as long as it takes) and start every registered handler."""
        await self._broker.start()

    async def stop(self) -> None:
        """Take no more requests, let running handlers finish, drain and close."""
        self._stopping = True
        await asyncio.gather(*(subscriber.stop() for subscriber in self._broker.subscribers))
        if self._answering:
            await asyncio.wait(self._answering, timeout=_FINISHED_WITHIN_S)
        await self._broker.stop()

    @property
    def connection(self) -> Client:
        """The nats-py connection."""
        return self._broker.connection

    @property
    def jetstream(self) -> JetStreamContext:
        """The JetStream context of the connection."""
        return self.connection.jetstream(timeout=_PUBLISH_TIMEOUT_S)

    async def check(self) -> None:
        """Raise Unavailable unless the server answers now; for readiness."""
        if not self.connection.is_connected:
            raise Unavailable("NATS is not connected")
        try:
            await self.connection.flush(timeout=1)
        except (nats.errors.Error, TimeoutError) as error:
            raise Unavailable("NATS does not answer") from error

    def serve(
        self, subject: Subject, model: type[RequestT], handler: Callable[[RequestT], Awaitable[Message]]
    ) -> None:
        """Answer requests on `subject` in this service's queue group. Call before `start`.

        Each is answered in a task of its own, so many at once: FastStream's own workers would pass it through a queue
        and a task group, for a fifth of a millisecond.
        """
        room = asyncio.Semaphore(_MAX_HANDLERS)

        async def answered(message: NatsMessage) -> None:
            try:
                traceparent = message.headers.get(tracing.HEADER)
                await self._reply(message, await answer(subject, model, handler, message.body, traceparent), subject)
            finally:
                room.release()

        async def endpoint(message: NatsMessage) -> None:
            await room.acquire()
            answering = asyncio.create_task(answered(message))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)

        subscriber = self._broker.subscriber(subject.pattern, queue=self._service, decoder=_undecoded, no_reply=True)
        subscriber(endpoint)

    async def call(self, subject: Subject, request: Message, reply: type[ReplyT], *, timeout_s: float) -> ReplyT:
        """Send a request and return its typed reply.

        Raises:
            CaissonError: the error that the other side raised.
            TimedOut: no answer in time; the effect is unknown.
            Unavailable: nobody serves the subject.
        """
        with tracer.start_as_current_span(subject.template, kind=trace.SpanKind.CLIENT):
            try:
                message = await self.connection.request(
                    str(subject), request.model_dump_json().encode(), timeout=timeout_s, headers=_trace_headers()
                )
            except nats.errors.MaxPayloadError as error:
                raise PayloadTooLarge(f"{subject.template}: over the bus's message size", field="body") from error
            except nats.errors.NoRespondersError as error:
                raise Unavailable(f"nobody serves {subject.template}") from error
            except (nats.errors.TimeoutError, TimeoutError) as error:
                raise TimedOut(f"no answer from {subject.template} in {timeout_s} s") from error
            except nats.errors.Error as error:
                raise Unavailable(f"NATS: {error}") from error
        return open_reply(message.data, reply)

    async def publish_event(self, subject: Subject, body: bytes, *, message_id: str) -> None:
        """Publish a fact on the EVENTS stream and wait for the PubAck.

        A repeated `message_id` within the stream's window is stored once.

        Raises:
            TimedOut: unknown whether it was stored; publish again with the same `message_id`.
            Unavailable: the stream or the server is missing.
        """
        try:
            await self.jetstream.publish(
                str(subject),
                body,
                stream=EVENTS_STREAM,
                headers={"Nats-Msg-Id": message_id, **(_trace_headers() or {})},
                timeout=_PUBLISH_TIMEOUT_S,
            )
        except (nats.errors.TimeoutError, TimeoutError) as error:
            raise TimedOut("no PubAck in time") from error
        except (nats.js.errors.Error, nats.errors.Error) as error:
            raise Unavailable(f"JetStream: {error}") from error

    async def publish_live(self, subject: Subject, body: bytes) -> None:
        """Publish on core NATS: at most once, never stored. While disconnected, it is dropped."""
        if self.connection.is_connected:
            await self.connection.publish(str(subject), body)

    async def listen(self, pattern: str, receive: Callable[[str, bytes], None]) -> Subscription:
        """Call `receive(subject, body)` for each message on a core subscription until it is unsubscribed."""

        async def deliver(message: Msg) -> None:
            receive(message.subject, message.data)

        return await self.connection.subscribe(pattern, cb=deliver)

    async def _reply(self, message: NatsMessage, reply: bytes, subject: Subject) -> None:
        limit = self.connection.max_payload
        try:
            await self.connection.publish(
                message.reply_to, reply if len(reply) <= limit else too_large(subject, len(reply), limit)
            )
        except nats.errors.Error as error:
            log.warning("rpc.unanswered", subject=subject.template, error=repr(error))

    async def _closed(self) -> None:
        if not self._stopping:
            log.error("bus.closed")
            self._on_closed()

    async def _connection_error(self, error: Exception) -> None:
        log.warning("bus.connection_error", error=repr(error))


async def _undecoded(message: NatsMessage) -> NatsMessage:
    return message


def _trace_headers() -> dict[str, str] | None:
    traceparent = tracing.current()
    return None if traceparent is None else {tracing.HEADER: traceparent}
