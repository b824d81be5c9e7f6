"""Request bodies: bounded, strict JSON; and no unknown names in a query.

Invariant: what passes here can be stored by PostgreSQL and sent as UTF-8.
"""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caisson.common.errors import CaissonError, InvalidInput

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
MAX_VALUES = 50_000
"""Reading more would keep the event loop from everybody else."""
_MAX_NUMBER = 1e15
_NOT_JSON = "the body is not JSON in UTF-8, or is nested too deeply"
_DISCARDED_BYTES = 64 * 1024 * 1024
_DISCARDING_S = 5
_SHOWN_CHARS = 64
_ENCODED_SLASH = re.compile("%(2f|25)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyTooLarge(CaissonError):
    """The body exceeds 4 MiB."""

    code = "body_too_large"


class NotJson(InvalidInput):
    """The body is not JSON."""

    code = "not_json"


class Edge:
    """Refuses NUL in paths and queries, and bodies over the limit before they are held in memory."""

    def __init__(self, application: ASGIApp, *, refuse: Callable[[CaissonError], Response]) -> None:
        self._application = application
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the ASGI call
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            await self._refuse(InvalidInput("must not contain NUL characters", field="path"))(scope, receive, send)
            return
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > MAX_BODY_BYTES:
            await _discard(receive)
            await self._refuse(_too_large())(scope, receive, send)
            return
        await self._application(scope, _bounded(receive), send)


def _bounded(receive: Receive) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MAX_BODY_BYTES:
            if message.get("more_body"):
                await _discard(receive)
            raise _too_large()
        return message

    return bounded


async def _discard(receive: Receive) -> None:
    """Read on for a while, keeping nothing: a connection closed under its sender loses the answer."""
    left_bytes = _DISCARDED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARDING_S):
            while left_bytes > 0:
                message = await receive()
                if not message.get("more_body"):
                    return
                left_bytes -= len(message["body"])


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"a body has at most {MAX_BODY_BYTES} bytes", field="body")


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        """Parse the body.

        Raises:
            NotJson: not JSON, or nested too deeply.
            InvalidInput: a lone surrogate, a NUL or a number out of range, naming where.
        """
        return parse(await self.body())


class StrictRoute(APIRoute):
    """A route that reads its body as `StrictRequest`, and knows every name in its query.

    A slash that is encoded belongs to an id of the path, and divides nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path as it was sent, and decode what it names."""
        match, matched = super().matches({**scope, "path": _undivided(scope)})
        if "path_params" in matched:
            matched["path_params"] = {name: unquote(value) for name, value in matched["path_params"].items()}
        return match, matched

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the framework's handler."""
        handle = super().get_route_handler()
        known = frozenset(parameter.alias for parameter in self.dependant.query_params)

        async def strict(request: Request) -> Response:
            _refuse_unknown(request, known)
            try:
                return await handle(StrictRequest(_as_json(request.scope), request.receive))
            except HTTPException as error:
                # The framework wraps whatever the reading of a body raises.
                if isinstance(error.__cause__, CaissonError):
                    raise error.__cause__ from None
                raise

        return strict


def _undivided(scope: Scope) -> str:
    """Return the path decoded but for slashes, and for the sign that encodes them."""
    sent: str = scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")
    return unquote(_ENCODED_SLASH.sub(r"%25\1", sent))


def _refuse_unknown(request: Request, known: frozenset[str]) -> None:
    """Refuse a name in the query that the route does not know: a filter that is not applied would look like one."""
    if unknown := request.query_params.keys() - known:
        raise InvalidInput("is no parameter of this path", field=min(unknown)[:_SHOWN_CHARS])


def _as_json(scope: Scope) -> Scope:
    """Say that a body is JSON, whatever the caller's tool says of it: this API takes nothing else."""
    others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*others, (b"content-type", b"application/json")]}


def parse(body: bytes) -> Any:
    """Parse strict JSON in UTF-8: no NaN, no duplicate keys, no lone surrogates, no NUL, at most 32 levels
    and 50,000 values.
    """
    _check_size(body)
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(_NOT_JSON, field="body") from error
    _check(value, "body", 0)
    return value


def _check_size(body: bytes) -> None:
    """Refuse what would take long to read, by its commas and brackets alone."""
    if body.count(b",") + _brackets(body) < MAX_VALUES:
        return
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    between = [bare] if bare.count(b'"') > 4 * MAX_VALUES else bare.split(b'"')[::2]
    commas, brackets = sum(part.count(b",") for part in between), sum(map(_brackets, between))
    if brackets > MAX_DEPTH * (commas + 1):
        raise NotJson(_NOT_JSON, field="body")
    if commas + brackets >= MAX_VALUES:
        raise InvalidInput(f"a body holds at most {MAX_VALUES} values", field="body")


def _brackets(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _refuse_constant(name: str) -> object:
    raise InvalidInput(f"{name} is not a number in JSON", field="body")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise InvalidInput("an object names a key twice", field="body")
    return values


def _check(value: Any, where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"nested deeper than {MAX_DEPTH} levels", field=where)
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
            raise InvalidInput("a number is at most 1e15 in magnitude", field=where)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _check(item, _join(where, str(place)), depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name, where)
            _check(item, _join(where, name), depth + 1)


def _join(where: str, name: str) -> str:
    return name if where == "body" else f"{where}.{name}"


def _check_text(text: str, where: str) -> None:
    if "\x00" in text:
        raise InvalidInput("must not contain NUL characters", field=where)
    if not text.isascii() and _SURROGATE.search(text):
        raise InvalidInput("must not contain lone surrogates", field=where)
