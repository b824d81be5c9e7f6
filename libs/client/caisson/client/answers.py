"""What came back: JSON, a typed error, or no answer at all."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from caisson.client.calls import Call
from caisson.client.errors import ApiError, ProtocolViolation, Unreachable, from_problem
from caisson.client.retrying import Lost, NotSent

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def classify(error: httpx.RequestError) -> NotSent | Lost:
    """Tell whether the gateway can have seen the request."""
    return NotSent() if isinstance(error, _NOT_SENT) else Lost()


def unreachable(error: httpx.RequestError, call: Call) -> Unreachable:
    """Describe a failed connection; an `idempotency_key` in it makes another try safe."""
    cause = str(error) or type(error).__name__
    return Unreachable(f"no answer from the gateway to {call.method} {call.path}: {cause}", idempotency_key=call.key)


def error_of(response: httpx.Response) -> ApiError:
    """Build the typed error of a refused request."""
    try:
        problem = json.loads(response.content)
    except ValueError:
        problem = None
    wait_s = read_retry_after(response.headers.get("Retry-After"))
    return from_problem(response.status_code, problem, reason=response.reason_phrase, retry_after_s=wait_s)


def read_retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:6])
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def read_json(response: httpx.Response) -> Any:
    """Return the JSON of a successful answer.

    Raises:
        ProtocolViolation: it is not JSON.
    """
    try:
        return json.loads(response.content)
    except ValueError as error:
        raise ProtocolViolation(f"{response.request.url} does not answer with JSON") from error
