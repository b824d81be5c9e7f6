"""Answering a request from the bus: read, handled, and replied to with what was asked for or a typed error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from opentelemetry import trace
from pydantic import ValidationError

from caisson.common import metrics, tracing
from caisson.common.errors import CaissonError, Internal, InvalidInput, PayloadTooLarge, not_valid
from caisson.common.messages import Message
from caisson.common.replies import answered, invalid_fields, refused
from caisson.common.subjects import Subject

RequestT = TypeVar("RequestT", bound=Message)

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


async def answer(
    subject: Subject,
    model: type[RequestT],
    handler: Callable[[RequestT], Awaitable[Message]],
    body: bytes,
    traceparent: str | None,
) -> bytes:
    """Return the reply to a request as it is sent."""
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


def too_large(subject: Subject, size: int, limit: int) -> bytes:
    """Say that an answer cannot be carried, instead of letting the caller wait for it."""
    told = f"{subject.template}: the answer has {size} bytes and the bus carries {limit}: ask for less at once"
    metrics.RPC_ERRORS.labels(subject=subject.template, code=PayloadTooLarge.code).inc()
    return refused(PayloadTooLarge(told))
