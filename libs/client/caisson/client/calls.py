"""One request before it is sent: who calls, for whom, what.

Invariant: the API key is in no repr and in no error, and every id is exactly one segment of a path.
"""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from caisson.client.errors import FieldError, InvalidInput

READ_TIMEOUT_S = 30.0
MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """For whom a platform key calls, and which memory scopes it grants for the call."""

    tenant: str | None = None
    user: str | None = None
    scopes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, value in (("Caisson-Tenant", self.tenant), ("Caisson-User", self.user)):
            if value is not None and not (value and value.isprintable()):
                raise refused(field, "must be printable and not empty")
        for scope in self.scopes:
            if not (scope and scope.isprintable() and scope == scope.strip()):
                raise refused("Caisson-Scopes", "each must be printable, not empty, and without spaces around it")

    def headers(self) -> dict[bytes, bytes]:
        """Return the identity headers, in UTF-8: ids may be of any script."""
        scopes = ",".join(map(_quoted, self.scopes)) or None
        named = ((b"caisson-tenant", self.tenant), (b"caisson-user", self.user), (b"caisson-scopes", scopes))
        return {name: value.encode() for name, value in named if value is not None}


def _quoted(scope: str) -> str:
    """Return a scope as it stands between commas."""
    if "," not in scope and not scope.startswith('"'):
        return scope
    return '"' + scope.replace("\\", "\\\\").replace('"', '\\"') + '"'


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

    def payload(self) -> tuple[bytes | None, dict[str, str]]:
        """Return the bytes to send and the headers that describe them.

        Raises:
            InvalidInput: the body holds what JSON cannot carry: NaN, a lone surrogate, a foreign type.
        """
        if self.body is None:
            return self.content, {}
        try:
            encoded = json.dumps(self.body, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, TypeError) as error:
            reason = "holds a lone surrogate" if isinstance(error, UnicodeEncodeError) else str(error)
            raise refused("body", reason) from None
        return encoded, {"Content-Type": "application/json"}


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
