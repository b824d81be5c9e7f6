"""Sending calls: a key for every POST, the retries, and typed errors.

Invariant: the API key goes to no other origin (redirects are refused), and no retry does a thing twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx

from caisson.client.answers import classify, error_of, read_json, unreachable
from caisson.client.calls import MAX_KEY_CHARS, READ_TIMEOUT_S, Call, Identity, refused
from caisson.client.errors import (
    ApiError,
    CaissonError,
    ProtocolViolation,
    QuotaExceeded,
    TenantRequired,
    UserRequired,
)
from caisson.client.retrying import GiveUp, Lost, NotSent, Refused, Retries, RetryAfter, decide

_CONNECT_TIMEOUT_S = 10.0
_CONFLICT = 409


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

    def acting_for_nobody(self) -> "Transport":
        """Return a view for calls whose path names the tenant they are about."""
        return Transport(self.http, identity=Identity(), retries=self.retries)

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

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """PATCH and return the JSON answer."""
        return read_json(await self.send(Call(method="PATCH", path=path, body=body)))

    async def delete(
        self, path: str, params: Mapping[str, str] | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
    ) -> Any:
        """DELETE and return the JSON answer, None where there is none."""
        call = Call(method="DELETE", path=path, params=params, read_timeout_s=read_timeout_s)
        response = await self.send(call)
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
            except QuotaExceeded:
                raise
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
        self.identity = replace(
            before,
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
        content, described = call.payload()
        request = self.http.build_request(
            call.method,
            call.path,
            content=content,
            params=call.params,
            headers=self._headers(call, described),
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

    def _headers(self, call: Call, described: Mapping[str, str]) -> httpx.Headers:
        headers = httpx.Headers({**described, **(call.headers or {})})
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
