"""How a trace crosses processes: one W3C `traceparent`, in HTTP and NATS headers, in a run's row, grant and context.

Invariant: spans carry templates and ids, never a text, a query or a credential.
"""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from caisson.common.ids import Ids

HEADER = "traceparent"

_propagator = TraceContextTextMapPropagator()


def current() -> str | None:
    """Return what another process needs to go on with the current trace; None outside of one."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get(HEADER)


def under(traceparent: str | None) -> Context:
    """Return the context of a trace that another process began; of a new one where it is None or no traceparent."""
    return _propagator.extract({HEADER: traceparent} if traceparent else {}, context=Context())


def describe(span: trace.Span, ids: Ids) -> None:
    """Name on a span what it is about."""
    if span.is_recording():
        known = {"tenant": ids.tenant, "user": ids.user, "session": ids.session, "run": ids.run, "step": ids.step}
        span.set_attributes({f"caisson.{name}": value for name, value in known.items() if value})
