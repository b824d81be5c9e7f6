"""A refusal as the client reads it: `application/problem+json` with the stable code (RFC 9457)."""

import json
from http import HTTPStatus

from caisson.proxy.domain.refusals import Refuse


def write_problem(refusal: Refuse, *, closes: bool, with_body: bool = True) -> bytes:
    """Write a whole answer. `with_body` is false for the answer to HEAD."""
    title = HTTPStatus(refusal.status).phrase
    body = json.dumps(
        {
            "type": "about:blank",
            "title": title,
            "status": refusal.status,
            "code": refusal.reason.value,
            "detail": refusal.detail,
        }
    ).encode()
    head = (
        f"HTTP/1.1 {refusal.status} {title}\r\n"
        "Content-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Connection: {'close' if closes else 'keep-alive'}\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
