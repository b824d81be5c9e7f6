"""Cursor pagination as one iterator: pages are fetched as they are needed."""

from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

from pydantic import ValidationError

from caisson.client.errors import ProtocolViolation
from caisson.client.models import Answer
from caisson.client.transport import Transport

PAGE_SIZE = 50

AnswerT = TypeVar("AnswerT", bound=Answer)


async def paginate(
    transport: Transport, path: str, model: type[AnswerT], *, params: Mapping[str, str | None], limit: int | None
) -> AsyncGenerator[AnswerT, None]:
    """Yield up to `limit` items (all of them for None), newest first."""
    query = {name: value for name, value in params.items() if value is not None}
    left = limit
    while left is None or left > 0:
        query["limit"] = str(PAGE_SIZE if left is None else min(PAGE_SIZE, left))
        page = await transport.get(path, query)
        items = page.get("items") if isinstance(page, dict) else None
        if not isinstance(items, list):
            raise ProtocolViolation(f"{path} does not answer with a page")
        for item in items:
            yield parse(model, item)
        if left is not None:
            left -= len(items)
        cursor = page.get("next_cursor")
        if not cursor or cursor == query.get("cursor"):
            return
        query["cursor"] = cursor


def parse(model: type[AnswerT], answer: object) -> AnswerT:
    """Return a typed answer.

    Raises:
        ProtocolViolation: it lacks what the API promises; the message names fields, never values.
    """
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        fields = ", ".join(".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False))
        raise ProtocolViolation(f"an answer is not a {model.__name__} of this API: {fields}") from None
