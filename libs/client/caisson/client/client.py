"""The typed client of the HTTP API.

Invariant: a call returns an answer of the gateway or raises why not, and no retry does a thing twice.
"""

from dataclasses import replace
from types import TracebackType
from typing import Self

import httpx

from caisson.client.administration import AdministrationCalls
from caisson.client.calls import BearerAuth, Identity
from caisson.client.memories import MemoryCalls
from caisson.client.retrying import Retries
from caisson.client.runs import RunCalls
from caisson.client.sessions import SessionCalls
from caisson.client.transport import Transport

_DEFAULT_RETRIES = Retries()


class Client(RunCalls, SessionCalls, MemoryCalls, AdministrationCalls):
    """One gateway as one API key sees it; use it as an async context manager.

    A platform key names whom it acts for with `tenant` and `user`, here or with `for_tenant`. `fallback` is used only
    when the gateway answers that a tenant or a user must be named.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        fallback: Identity | None = None,
        retries: Retries = _DEFAULT_RETRIES,
        http_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        base_url = check_url(url)
        http = httpx.AsyncClient(
            base_url=base_url,
            auth=BearerAuth(api_key),
            headers={"Accept": "application/json"},
            transport=http_transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            verify=base_url.scheme == "https",
        )
        self._transport = Transport(
            http, identity=Identity(tenant=tenant, user=user), retries=retries, fallback=fallback
        )

    def for_tenant(self, tenant: str, user: str | None = None) -> "Client":
        """Return a view that acts for another tenant and user, on the same connections."""
        view = object.__new__(Client)
        view._transport = self._transport.acting_for(Identity(tenant=tenant, user=user))
        return view

    def with_scopes(self, *scopes: str) -> "Client":
        """Return a view whose calls about memory are granted these scopes too; only a platform key may grant."""
        view = object.__new__(Client)
        view._transport = self._transport.acting_for(replace(self._transport.identity, scopes=scopes))
        return view

    @property
    def url(self) -> httpx.URL:
        """The gateway's URL."""
        return self._transport.http.base_url

    async def ready(self) -> list[str]:
        """Return the names of what the gateway has checked of itself.

        Raises:
            Unavailable: it is not ready for work.
        """
        answer = await self._transport.get("/readyz")
        return [str(name) for name in answer.get("checks", [])] if isinstance(answer, dict) else []

    async def aclose(self) -> None:
        """Close the connections, also those of every view."""
        await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        identity = self._transport.identity
        return f"Client(url={str(self.url)!r}, tenant={identity.tenant!r}, user={identity.user!r})"


def check_url(url: str) -> httpx.URL:
    """Return a gateway's URL.

    Raises:
        ValueError: it is not http(s) with a host, or it holds a user name or password.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"not a URL: {error}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError("the gateway's URL must be http://host or https://host")
    if parsed.userinfo:
        raise ValueError("the gateway's URL must hold no user name or password")
    return parsed
