"""Errors as RFC 9457 problems. The one place where a code meets an HTTP status."""

import json
from collections.abc import Sequence
from http import HTTPStatus

import structlog
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import CaissonError, FieldError, Internal, InvalidInput, NotFound, not_valid
from caisson.gateway.api.bodies import BodyTooLarge, NotJson
from caisson.gateway.domain.idempotency import Stored

_STATUS: dict[str, HTTPStatus] = {
    "invalid_input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "payload_too_large": HTTPStatus.UNPROCESSABLE_ENTITY,
    BodyTooLarge.code: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    NotJson.code: HTTPStatus.BAD_REQUEST,
    "not_found": HTTPStatus.NOT_FOUND,
    "conflict": HTTPStatus.CONFLICT,
    "denied": HTTPStatus.FORBIDDEN,
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "exhausted": HTTPStatus.INSUFFICIENT_STORAGE,
    "quota_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "gone": HTTPStatus.GONE,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}
_RETRY_AFTER_S = "1"
_PLACES = {"body", "query", "path", "header"}

log = structlog.get_logger(__name__)


def status_of(error: CaissonError) -> HTTPStatus:
    """Return the status of the nearest class of the tree that has one."""
    for kind in type(error).__mro__:
        code = getattr(kind, "code", None)
        if "code" in kind.__dict__ and code in _STATUS:
            return _STATUS[code]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem(error: CaissonError, *, instance: str | None = None) -> Response:
    """Render an error."""
    status = status_of(error)
    body: dict[str, object] = {
        "type": f"urn:caisson:problem:{error.code}",
        "title": status.phrase,
        "status": int(status),
        "detail": error.detail,
        "code": error.code,
    }
    if instance:
        body["instance"] = instance
    if error.fields:
        body["errors"] = [{"field": item.field, "message": item.message} for item in error.fields]
    headers = {}
    if error.retryable:
        headers["Retry-After"] = _RETRY_AFTER_S
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    content = json.dumps(body, ensure_ascii=True).encode()
    return Response(content, status_code=status, headers=headers, media_type="application/problem+json")


def stored(error: CaissonError) -> Stored:
    """Render an error as an answer to be replayed."""
    rendered = problem(error)
    headers = {"content-type": rendered.headers["content-type"]}
    return Stored(status=rendered.status_code, headers=headers, body=bytes(rendered.body))


async def on_caisson_error(_: Request, error: Exception) -> Response:
    """Answer a typed error."""
    if not isinstance(error, CaissonError):
        raise error
    return problem(error)


async def on_validation_error(_: Request, error: Exception) -> Response:
    """Answer a request whose fields are not as declared; never repeats the input."""
    if not isinstance(error, RequestValidationError):
        raise error
    fields = tuple(FieldError(field=_field(item["loc"]), message=item["msg"]) for item in error.errors()[:50])
    return problem(InvalidInput(not_valid(len(error.errors())), fields=fields))


def _field(where: Sequence[int | str]) -> str:
    """Name a field; the first part says where in the request it stands, and a field may be called the same."""
    inside = where[1:] if where and where[0] in _PLACES else where
    return ".".join(map(str, inside)) or "body"


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Answer what the framework refuses: unknown paths and methods."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.NOT_FOUND:
        return problem(NotFound("no such path"))
    status = HTTPStatus(error.status_code)
    body = {
        "type": "urn:caisson:problem:http",
        "title": status.phrase,
        "status": int(status),
        "detail": str(error.detail),
        "code": status.phrase.lower().replace(" ", "_"),
    }
    return Response(
        json.dumps(body), status_code=status, headers=error.headers, media_type="application/problem+json"
    )


async def on_bug(_: Request, error: Exception) -> Response:
    """Answer a bug without telling its inside."""
    log.error("api.failed", exc_info=error)
    return problem(Internal("the gateway failed; its log has the cause"))
