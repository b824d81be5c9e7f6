"""The client's one tree of errors. What the gateway refuses is an `ApiError`, chosen by code, else by status.

CaissonError
├── Unreachable             no answer: the connection failed, or broke for longer than the retries allow
├── WaitTimedOut            the run was not finished within the time given
├── KeyLost                 an API key was made, and the answer that showed it was lost
├── ProtocolViolation       the answer is not of the API's form
└── ApiError                a problem+json answer
    ├── InvalidInput        400, 413, 422
    │   ├── TenantRequired  tenant_required
    │   ├── UserRequired    user_required
    │   ├── EmptyQuery      empty_query
    │   └── IdempotencyKeyReused  idempotency_key_reused
    ├── Unauthenticated     401
    ├── Denied              403
    │   └── TenantMismatch  tenant_mismatch
    ├── NotFound            404
    ├── Conflict            409
    │   ├── RunFinished     run_finished
    │   └── SessionDeleting session_deleting
    ├── EventsExpired       410
    ├── TooManyRequests     429
    │   └── QuotaExceeded   quota_exceeded
    └── ServerError         500 and above
        └── Unavailable     502, 503, 504
"""

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One refused field: its dotted path and what would have been accepted."""

    field: str
    message: str


class CaissonError(Exception):
    """A failure of a call, with a stable code."""

    default_code: ClassVar[str] = "error"

    def __init__(self, detail: str, *, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code


class Unreachable(CaissonError):
    """No answer came. With an `idempotency_key`, the same call with the same key is safe to make again."""

    default_code = "unreachable"

    def __init__(self, detail: str, *, idempotency_key: str | None = None) -> None:
        super().__init__(detail)
        self.idempotency_key = idempotency_key


class WaitTimedOut(CaissonError):
    """The run was not finished in time; it goes on."""

    default_code = "wait_timed_out"


class KeyLost(CaissonError):
    """An API key was made, but the one answer that showed it did not arrive."""

    default_code = "key_lost"


class ProtocolViolation(CaissonError):
    """The answer is not of the API's form: not a Caisson gateway, or one of another major version."""

    default_code = "protocol_violation"


class ApiError(CaissonError):
    """The gateway refused the request. `status` is None when the client refused it before sending."""

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        status: int | None = None,
        errors: tuple[FieldError, ...] = (),
        retry_after_s: float | None = None,
        problem: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code)
        self.status = status
        self.errors = errors
        self.retry_after_s = retry_after_s
        self.problem = problem or {}

    def __str__(self) -> str:
        fields = "".join(f"; {item.field}: {item.message}" for item in self.errors if item.message != self.detail)
        return f"{self.detail} ({self.code}){fields}"


class InvalidInput(ApiError):
    """The request breaks a rule; `errors` names fields and limits."""

    default_code = "invalid_input"


class TenantRequired(InvalidInput):
    """A platform key must name the tenant it acts for."""

    default_code = "tenant_required"


class UserRequired(InvalidInput):
    """A platform key must name the user it acts for."""

    default_code = "user_required"


class EmptyQuery(InvalidInput):
    """The query says nothing that could be searched for."""

    default_code = "empty_query"


class IdempotencyKeyReused(InvalidInput):
    """The Idempotency-Key was used before for another request."""

    default_code = "idempotency_key_reused"


class Unauthenticated(ApiError):
    """The API key is missing, unknown or revoked."""

    default_code = "unauthenticated"


class Denied(ApiError):
    """The API key may not do this."""

    default_code = "denied"


class TenantMismatch(Denied):
    """A tenant key was used for another tenant."""

    default_code = "tenant_mismatch"


class NotFound(ApiError):
    """The object does not exist for this tenant."""

    default_code = "not_found"


class Conflict(ApiError):
    """The object's state does not permit the change."""

    default_code = "conflict"


class RunFinished(Conflict):
    """The run is finished and takes no more changes."""

    default_code = "run_finished"


class SessionDeleting(Conflict):
    """The session is being deleted: nothing begins in it."""

    default_code = "session_deleting"


class EventsExpired(ApiError):
    """The events after the given id are past their retention; the run itself tells how it ended."""

    default_code = "events_expired"


class TooManyRequests(ApiError):
    """A rate or a quota is used up for now."""

    default_code = "too_many_requests"


class QuotaExceeded(TooManyRequests):
    """A user or a tenant holds as much as it may; the detail names limit and usage. Another try changes nothing."""

    default_code = "quota_exceeded"


class ServerError(ApiError):
    """The gateway failed; its log has the cause."""

    default_code = "internal"


class Unavailable(ServerError):
    """The gateway, or something it needs, cannot answer now."""

    default_code = "unavailable"


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: EventsExpired,
    413: InvalidInput,
    422: InvalidInput,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_BY_CODE: dict[str, type[ApiError]] = {
    kind.default_code: kind
    for kind in (
        TenantRequired,
        UserRequired,
        EmptyQuery,
        IdempotencyKeyReused,
        TenantMismatch,
        RunFinished,
        SessionDeleting,
        QuotaExceeded,
    )
}
_FIRST_SERVER_ERROR = 500


def class_for(status: int, code: str | None) -> type[ApiError]:
    """Return the class for an answer: by its code where one is known, else by its status."""
    by_code = _BY_CODE.get(code or "")
    if by_code is not None:
        return by_code
    return _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else ApiError)


def from_problem(status: int, problem: object, *, reason: str, retry_after_s: float | None = None) -> ApiError:
    """Build the error of an answer; `problem` may be anything, `reason` stands in where it is not problem+json."""
    body: dict[str, Any] = problem if isinstance(problem, dict) else {}
    code = body.get("code")
    code = code if isinstance(code, str) else f"http_{status}"
    detail = body.get("detail") or body.get("title") or f"{status} {reason}".strip()
    listed = body.get("errors")
    errors = tuple(
        FieldError(field=str(item.get("field", "")), message=str(item.get("message", "")))
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict)
    )
    return class_for(status, code)(
        str(detail), code=code, status=status, errors=errors, retry_after_s=retry_after_s, problem=body
    )
