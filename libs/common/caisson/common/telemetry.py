"""JSON logs with all ids bound, and traces when an endpoint is configured."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from caisson.common.ids import Ids

# Never with local variables: they hold what must not be logged.
_TRACEBACKS = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)


def configure(service: str, *, level: str, otlp_endpoint: str | None) -> None:
    """Set up logging for the whole process and, with an endpoint, tracing."""
    numeric = logging.getLevelNamesMapping()[level.upper()]
    described: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_service(service),
        structlog.processors.ExceptionRenderer(_TRACEBACKS),
    ]
    rendered = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*described, rendered],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(structlog.stdlib.ProcessorFormatter(processor=rendered, foreign_pre_chain=described))
    logging.basicConfig(level=max(numeric, logging.WARNING), handlers=[libraries])
    if otlp_endpoint:
        provider = TracerProvider(resource=Resource.create({"service.name": f"caisson-{service}"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=otlp_endpoint)))
        trace.set_tracer_provider(provider)


def _add_service(service: str) -> structlog.typing.Processor:
    def add(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["service"] = service
        return event

    return add


def bind(ids: Ids) -> None:
    """Bind the ids to every log line of the current task."""
    known = {"tenant": ids.tenant, "user": ids.user, "session": ids.session, "run": ids.run, "step": ids.step}
    structlog.contextvars.bind_contextvars(**{name: value for name, value in known.items() if value})
