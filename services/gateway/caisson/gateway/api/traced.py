"""A span for each HTTP request, under the caller's where it sends a `traceparent`."""

from opentelemetry import trace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caisson.common import tracing

tracer = trace.get_tracer(__name__)


class Traced:
    """Everything inside belongs to the request's span, whose name is the route's template."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the ASGI call
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        name = tracing.HEADER.encode()
        sent = next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)
        with tracer.start_as_current_span(
            scope["method"], context=tracing.under(sent), kind=trace.SpanKind.SERVER
        ) as span:
            await self._application(scope, receive, _noting(span, send) if span.is_recording() else send)
            if span.is_recording() and (route := scope.get("route")):
                span.update_name(f"{scope['method']} {route.path}")
                span.set_attribute("http.route", route.path)


def _noting(span: trace.Span, send: Send) -> Send:
    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
        await send(message)

    return noting
