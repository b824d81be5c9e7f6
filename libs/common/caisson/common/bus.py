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
from pydantic import ValidationError

from caisson.common import metrics, tracing
from caisson.common.errors import (
    CaissonError,
    Internal,
    InvalidInput,
    PayloadTooLarge,
    TimedOut,
    Unavailable,
    not_valid,
)
from caisson.common.messages import Message
from caisson.common.replies import ReplyT, answered, invalid_fields, open_reply, refused
from caisson.common.settings import ServiceSettings
from caisson.common.subjects import EVENTS_STREAM, Subject

RequestT = TypeVar("RequestT", bound=Message)

_RECONNECT_WAIT_S = 0.5
_PUBLISH_TIMEOUT_S = 2.0
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
        """Let running handlers finish, drain and close."""
        self._stopping = True
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
        """Answer requests on `subject` in this service's queue group. Call before `start`."""

        async def endpoint(request: tuple[bytes, str | None]) -> bytes:
            body, traceparent = request
            reply = await _answer(subject, model, handler, body, traceparent)
            limit = self.connection.max_payload
            return reply if len(reply) <= limit else _too_large(subject, len(reply), limit)

        async def undecoded(message: NatsMessage) -> tuple[bytes, str | None]:
            return message.body, message.headers.get(tracing.HEADER)

        subscriber = self._broker.subscriber(
            subject.pattern, queue=self._service, max_workers=_MAX_HANDLERS, decoder=undecoded
        )
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

    async def _closed(self) -> None:
        if not self._stopping:
            log.error("bus.closed")
            self._on_closed()

    async def _connection_error(self, error: Exception) -> None:
        log.warning("bus.connection_error", error=repr(error))


def _trace_headers() -> dict[str, str] | None:
    traceparent = tracing.current()
    return None if traceparent is None else {tracing.HEADER: traceparent}


async def _answer(
    subject: Subject,
    model: type[RequestT],
    handler: Callable[[RequestT], Awaitable[Message]],
    body: bytes,
    traceparent: str | None,
) -> bytes:
    with metrics.RPC_SECONDS.labels(subject=subject.template).time():
        try:
            request = _read(subject, model, body)
            with tracer.start_as_current_span(
                subject.template, context=tracing.under(traceparent), kind=trace.SpanKind.SERVER
            ):
                reply = await handler(request)
            return answered(reply)
        except CaissonError as error:
            problem = error
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("rpc.failed", subject=subject.template)
            problem = Internal(f"{subject.template} failed; the log of the service has the cause")
        metrics.RPC_ERRORS.labels(subject=subject.template, code=problem.code).inc()
        return refused(problem)


def _read(subject: Subject, model: type[RequestT], body: bytes) -> RequestT:
    """Read a request; apart from its handling, in which a model that is not valid is a bug of ours."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        told = f"{subject.template}: {not_valid(error.error_count())}"
        raise InvalidInput(told, fields=invalid_fields(error)) from error


def _too_large(subject: Subject, size: int, limit: int) -> bytes:
    """Say that an answer cannot be carried, instead of letting the caller wait for it."""
    told = f"{subject.template}: the answer has {size} bytes and the bus carries {limit}: ask for less at once"
    metrics.RPC_ERRORS.labels(subject=subject.template, code=PayloadTooLarge.code).inc()
    return refused(PayloadTooLarge(told))
