"""Every error of the gateway has an HTTP status of its own kind, and is told as RFC 9457 asks."""

import json
from http import HTTPStatus

import pytest

from caisson.common import errors
from caisson.common.errors import CaissonError, FieldError
from caisson.gateway.api import bodies, callers, events
from caisson.gateway.api.problems import problem, status_of
from caisson.gateway.domain import idempotency, limits, principals, sessions

STATUSES: list[tuple[type[CaissonError], int]] = [
    (errors.CaissonError, 500),
    (errors.InvalidInput, 422),
    (errors.InvalidId, 422),
    (errors.PayloadTooLarge, 422),
    (errors.NotFound, 404),
    (errors.EmptyQuery, 422),
    (errors.Conflict, 409),
    (errors.LeaseLost, 409),
    (errors.LateResult, 409),
    (errors.RunFinished, 409),
    (errors.Denied, 403),
    (errors.TenantMismatch, 403),
    (errors.Unauthenticated, 401),
    (errors.Exhausted, 507),
    (errors.UidRangeExhausted, 507),
    (errors.QuotaExceeded, 429),
    (errors.Unavailable, 503),
    (errors.TimedOut, 503),
    (errors.Misconfigured, 500),
    (errors.Internal, 500),
    (bodies.BodyTooLarge, 413),
    (bodies.NotJson, 400),
    (callers.PlatformOnly, 403),
    (events.Gone, 410),
    (idempotency.KeyReused, 422),
    (idempotency.InProgress, 409),
    (limits.LimitExceeded, 422),
    (principals.TenantRequired, 422),
    (principals.UserRequired, 422),
    (sessions.SessionDeleting, 409),
]


@pytest.mark.parametrize(("kind", "status"), STATUSES, ids=lambda value: getattr(value, "code", None))
def test_an_error_has_the_status_of_its_kind(kind: type[CaissonError], status: int) -> None:
    assert status_of(kind("no")) == status


def test_no_error_that_the_gateway_can_raise_is_missing_above() -> None:
    ours = {
        kind
        for kind in errors.all_errors().values()
        if kind.__module__.startswith(("caisson.common.", "caisson.gateway."))
    }
    assert ours == {kind for kind, _ in STATUSES}


def test_a_problem_tells_code_fields_and_when_to_come_back() -> None:
    refused = limits.LimitExceeded(
        "pids: at most 512", fields=(FieldError(field="limits.pids", message="at most 512"),)
    )
    response = problem(refused)
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(bytes(response.body)) == {
        "type": "urn:caisson:problem:limit_exceeded",
        "title": HTTPStatus.UNPROCESSABLE_ENTITY.phrase,
        "status": 422,
        "detail": "pids: at most 512",
        "code": "limit_exceeded",
        "errors": [{"field": "limits.pids", "message": "at most 512"}],
    }
    assert problem(errors.Unavailable("later")).headers["retry-after"] == "1"
    assert problem(errors.Unauthenticated("key")).headers["www-authenticate"] == "Bearer"


def test_a_field_with_half_an_emoji_in_its_name_can_be_told() -> None:
    assert bytes(problem(errors.InvalidInput("no", field="a\ud83d")).body).isascii()
