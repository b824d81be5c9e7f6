"""What the fake gateway answers with: problems, pages, event streams."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse


@dataclass
class RawStream:
    """An event stream as bytes; one that is not `clean` ends with the connection cut."""

    data: bytes
    clean: bool = True


class Cut(Exception):
    """Makes the server drop the connection in the middle of an answer."""


def problem(
    status: int,
    code: str,
    detail: str,
    field_name: str | None = None,
    message: str | None = None,
    *,
    headers: dict[str, str] | None = None,
) -> Response:
    body: dict[str, Any] = {"type": f"urn:caisson:problem:{code}", "status": status, "detail": detail, "code": code}
    if field_name:
        body["errors"] = [{"field": field_name, "message": message or detail}]
    return JSONResponse(body, status, headers=headers, media_type="application/problem+json")


def page(request: Request, items: list[dict[str, Any]]) -> Response:
    start, limit = int(request.query_params.get("cursor", 0)), int(request.query_params.get("limit", 50))
    more = start + limit < len(items)
    return JSONResponse({"items": items[start : start + limit], "next_cursor": str(start + limit) if more else None})


def event_stream(frames: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream")


async def raw_frames(stream: RawStream) -> AsyncIterator[bytes]:
    yield stream.data
    if not stream.clean:
        raise Cut
