"""One call of the API: who calls and for whom, a key for every POST, the retries, and typed errors.

Invariant: the API key is in no repr, no log and no error, and goes to no other origin (redirects are refused).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from caisson.client.errors import (
    ApiError,
    CaissonError,
    FieldError,
    InvalidInput,
    ProtocolViolation,
    TenantRequired,
    Unreachable,
    UserRequired,
    from_problem,
)
from caisson.client.retrying import GiveUp, Lost, NotSent, Refused, Retries, RetryAfter, decide

READ_TIMEOUT_S = 30.0
MAX_KEY_CHARS = 255
_CONNECT_TIMEOUT_S = 10.0
_CONFLICT = 409
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """For whom a platform key calls."""

    tenant: str | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        for field, value in (("Caisson-Tenant", self.tenant), ("Caisson-User", self.user)):
            if value is not None and not (value and value.isprintable()):
                raise refused(field, "must be printable and not empty")

    def headers(self) -> dict[bytes, bytes]:
        """Return the identity headers, in UTF-8: ids may be of any script."""
        named = ((b"caisson-tenant", self.tenant), (b"caisson-user", self.user))
        return {name: value.encode() for name, value in named if value is not None}


class BearerAuth(httpx.Auth):
    """Adds the API key to each request; shows it nowhere."""

    def __init__(self, api_key: str) -> None:
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise ValueError("the API key must be printable ASCII without spaces")
        self._header = f"Bearer {api_key}"

    def __repr__(self) -> str:
        return "BearerAuth(***)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Set the header."""
        request.headers["Authorization"] = self._header
        yield request


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, before it is given an identity. `key` is its Idempotency-Key."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    key: str | None = None
    read_timeout_s: float = READ_TIMEOUT_S


class Transport:
    """Sends calls on one pool of connections. Views for other identities share the pool."""

    def __init__(
        self, http: httpx.AsyncClient, *, identity: Identity, retries: Retries, fallback: Identity | None = None
    ) -> None:
        self.http = http
        self.identity = identity
        self.retries = retries
        self.fallback = fallback

    def acting_for(self, identity: Identity) -> "Transport":
        """Return a view that calls for another tenant and user."""
        return Transport(self.http, identity=identity, retries=self.retries, fallback=self.fallback)

    async def post(
        self, path: str, body: Mapping[str, Any], *, key: str | None = None, read_timeout_s: float = READ_TIMEOUT_S
    ) -> Any:
        """POST with an Idempotency-Key (a new one unless given) and return the JSON answer."""
        call = Call(method="POST", path=path, body=body, key=key or uuid4().hex, read_timeout_s=read_timeout_s)
        return read_json(await self.send(call))

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
    ) -> Any:
        """GET and return the JSON answer."""
        return read_json(await self.send(Call(method="GET", path=path, params=params, read_timeout_s=read_timeout_s)))

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """PUT and return the JSON answer, None where there is none."""
        response = await self.send(Call(method="PUT", path=path, body=body))
        return read_json(response) if response.content else None

    async def delete(self, path: str) -> Any:
        """DELETE and return the JSON answer, None where there is none."""
        response = await self.send(Call(method="DELETE", path=path))
        return read_json(response) if response.content else None

    async def send(self, call: Call) -> httpx.Response:
        """Make the call, again where that is safe and useful, and return its successful answer.

        Raises:
            ApiError: the gateway refused it.
            Unreachable: no answer within the retries.
        """
        streak = Streak()
        while True:
            try:
                return await self._send_once(call)
            except httpx.RequestError as error:
                failure: NotSent | Lost | Refused = classify(error)
                told: CaissonError = unreachable(error, call)
            except ApiError as error:
                failure = Refused(status=error.status or 0, retry_after_s=error.retry_after_s)
                told = error
            streak.add(failure)
            match decide(
                failure,
                method=call.method,
                keyed=call.key is not None,
                attempt=streak.length,
                elapsed_s=streak.elapsed_s,
                retries=self.retries,
            ):
                case RetryAfter(delay_s=delay_s):
                    await asyncio.sleep(delay_s)
                case GiveUp():
                    raise told

    def _take_fallback(self) -> bool:
        """Fill what is missing from the fallback; the gateway has refused before doing anything."""
        before, other = self.identity, self.fallback or Identity()
        self.identity = Identity(
            tenant=other.tenant if before.tenant is None else before.tenant,
            user=other.user if before.user is None else before.user,
        )
        return self.identity != before

    async def _send_once(self, call: Call) -> httpx.Response:
        async with self.open(call) as response:
            await response.aread()
            return response

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncGenerator[httpx.Response, None]:
        """Make the call once and yield the successful answer unread.

        Raises:
            ApiError: the gateway refused it.
            ProtocolViolation: it was redirected.
        """
        response = await self._respond(call)
        try:
            yield response
        finally:
            await response.aclose()

    async def _respond(self, call: Call) -> httpx.Response:
        request = self.http.build_request(
            call.method,
            call.path,
            json=call.body,
            content=call.content,
            params=call.params,
            headers=self._headers(call),
            timeout=httpx.Timeout(_CONNECT_TIMEOUT_S, read=call.read_timeout_s),
        )
        response = await self.http.send(request, stream=True)
        if response.is_success:
            return response
        try:
            await response.aread()
        finally:
            await response.aclose()
        if not response.is_error:
            raise ProtocolViolation(f"{request.url} answers {response.status_code}: is the URL that of a gateway?")
        error = error_of(response)
        if isinstance(error, TenantRequired | UserRequired) and self._take_fallback():
            return await self._respond(call)
        raise error

    def _headers(self, call: Call) -> httpx.Headers:
        headers = httpx.Headers(dict(call.headers or {}))
        headers.update(httpx.Headers(self.identity.headers()))
        if call.key is not None:
            if not (0 < len(call.key) <= MAX_KEY_CHARS and call.key.isascii() and call.key.isprintable()):
                raise refused("Idempotency-Key", f"1 to {MAX_KEY_CHARS} printable ASCII characters")
            headers["Idempotency-Key"] = call.key
        return headers


class Streak:
    """Consecutive failures of one kind: waiting for an earlier request is not counted against broken connections."""

    def __init__(self) -> None:
        self.length = 0
        self._in_progress = False
        self._began = 0.0

    def add(self, failure: NotSent | Lost | Refused) -> None:
        """Count a failure."""
        in_progress = isinstance(failure, Refused) and failure.status == _CONFLICT
        if self.length == 0 or in_progress != self._in_progress:
            self.length, self._in_progress, self._began = 0, in_progress, asyncio.get_running_loop().time()
        self.length += 1

    @property
    def elapsed_s(self) -> float:
        """Return the time since the streak's first failure."""
        return asyncio.get_running_loop().time() - self._began


def refused(field: str, message: str) -> InvalidInput:
    """Build the error for a value that cannot be sent."""
    return InvalidInput(f"{field}: {message}", errors=(FieldError(field=field, message=message),))


def segment(value: str, *, field: str) -> str:
    """Return an id as exactly one segment of a path."""
    if value in {"", ".", ".."}:
        raise refused(field, "is not an id")
    return quote(value, safe="")


def run_path(run_id: str) -> str:
    """Return the path of a run."""
    return f"/v1/runs/{segment(run_id, field='run_id')}"


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
