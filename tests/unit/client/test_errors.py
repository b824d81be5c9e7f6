"""Problems as typed errors."""

import pytest

from caisson.client import errors
from caisson.client.errors import ApiError, CaissonError, FieldError, from_problem

CASES: list[tuple[int, str | None, type[ApiError]]] = [
    (422, "limit_exceeded", errors.InvalidInput),
    (422, "tenant_required", errors.TenantRequired),
    (422, "user_required", errors.UserRequired),
    (422, "idempotency_key_reused", errors.IdempotencyKeyReused),
    (413, "body_too_large", errors.InvalidInput),
    (400, "not_json", errors.InvalidInput),
    (401, "unauthenticated", errors.Unauthenticated),
    (403, "tenant_mismatch", errors.TenantMismatch),
    (403, "platform_only", errors.Denied),
    (404, "not_found", errors.NotFound),
    (409, "run_finished", errors.RunFinished),
    (409, "session_deleting", errors.SessionDeleting),
    (409, "conflict", errors.Conflict),
    (410, "gone", errors.EventsExpired),
    (422, "empty_query", errors.EmptyQuery),
    (429, "too_many_requests", errors.TooManyRequests),
    (429, "quota_exceeded", errors.QuotaExceeded),
    (500, "internal", errors.ServerError),
    (502, None, errors.Unavailable),
    (503, "unavailable", errors.Unavailable),
    (507, "uid_range_exhausted", errors.ServerError),
    (418, "a_newer_code", ApiError),
]


@pytest.mark.parametrize(("status", "code", "kind"), CASES)
def test_an_answer_becomes_the_error_of_its_code_else_of_its_status(
    status: int, code: str | None, kind: type[ApiError]
) -> None:
    error = from_problem(status, {"code": code, "detail": "why"} if code else None, reason="Because")
    assert type(error) is kind
    assert (error.status, error.code) == (status, code or f"http_{status}")


def test_every_class_of_the_tree_has_a_code_of_its_own() -> None:
    def walk(kind: type[CaissonError]) -> list[type[CaissonError]]:
        return [kind, *(found for child in kind.__subclasses__() for found in walk(child))]

    codes = [kind.default_code for kind in walk(CaissonError) if kind is not ApiError]
    assert len(codes) == len(set(codes))
    assert all(kind.__name__ in (errors.__doc__ or "") for kind in walk(CaissonError))


def test_a_refusal_tells_field_and_limit() -> None:
    problem = {
        "code": "limit_exceeded",
        "detail": "memory_mib: at most 2048",
        "errors": [{"field": "limits.memory_mib", "message": "at most 2048"}],
    }
    error = from_problem(422, problem, reason="")
    assert error.errors == (FieldError(field="limits.memory_mib", message="at most 2048"),)
    assert str(error) == "memory_mib: at most 2048 (limit_exceeded); limits.memory_mib: at most 2048"


@pytest.mark.parametrize(
    "body", [None, [], "text", {"errors": "x"}, {"errors": [1, {}]}, {"code": 7, "detail": None}]
)
def test_an_answer_that_is_no_problem_is_still_an_error_with_its_status(body: object) -> None:
    error = from_problem(502, body, reason="Bad Gateway")
    assert isinstance(error, errors.Unavailable)
    assert error.detail == "502 Bad Gateway"
    assert error.code == "http_502"
