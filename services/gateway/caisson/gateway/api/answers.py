"""Answers as HTTP responses: serialised once, by pydantic."""

from http import HTTPStatus

from pydantic import BaseModel
from starlette.responses import Response

JSON = "application/json"


def answer(
    model: BaseModel, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    """Render a model."""
    return Response(model.model_dump_json().encode(), status_code=status, headers=headers, media_type=JSON)
