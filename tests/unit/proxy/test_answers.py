"""What of an upstream's head goes on, and how its body is framed."""

import pytest

from caisson.proxy.domain.answers import Answer, Framing, read_answer
from caisson.proxy.domain.refusals import Refuse

CASES = (
    ("Content-Length: 2\r\nX-A:  b \r\n", "Content-Length: 2\r\nX-A:  b \r\n", Framing.LENGTH, True, "length"),
    ("CONTENT-LENGTH: 2\r\n", "CONTENT-LENGTH: 2\r\n", Framing.LENGTH, True, "names keep their case"),
    ("transfer-encoding: Chunked\r\n", "", Framing.CHUNKED, True, "chunks end here"),
    ("A: b\r\n", "A: b\r\n", Framing.CLOSE, False, "neither"),
    ("Content-Length: 2\r\nConnection: close\r\n", "Content-Length: 2\r\n", Framing.LENGTH, False, "closing"),
    ("Connection: keep-alive\r\nContent-Length: 2\r\n", "Content-Length: 2\r\n", Framing.LENGTH, True, "staying"),
    (
        "Connection: X-P, close\r\nx-p: 1\r\nX-Private: 2\r\nContent-Length: 2\r\n",
        "X-Private: 2\r\nContent-Length: 2\r\n",
        Framing.LENGTH,
        False,
        "nominated names",
    ),
    (
        "Keep-Alive: timeout=5\r\nUpgrade: h2\r\nTE: x\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\n",
        Framing.LENGTH,
        True,
        "hop by hop",
    ),
    (
        "Connection-Id: 1\r\nTee: 2\r\nContent-Length: 0\r\n",
        "Connection-Id: 1\r\nTee: 2\r\nContent-Length: 0\r\n",
        Framing.LENGTH,
        True,
        "names that only begin alike",
    ),
    (
        "Connection: closed\r\nConnection: close\r\nClosed: 1\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\n",
        Framing.LENGTH,
        False,
        "a line that begins like another",
    ),
)


@pytest.mark.parametrize(("fields", "kept", "framing", "stays", "reason"), CASES, ids=[case[-1] for case in CASES])
def test_a_head_is_read(fields: str, kept: str, framing: Framing, stays: bool, reason: str) -> None:  # noqa: FBT001
    head = f"HTTP/1.1 200 Fine\r\n{fields}\r\n".encode()
    assert read_answer(head, 200, to_head=False) == Answer(
        200, f"HTTP/1.1 200 Fine\r\n{kept}".encode(), framing, encoded=False, stays_open=stays
    )


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "chunked, chunked", "identity"])
def test_another_transfer_coding_is_refused(coding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
    assert isinstance(read_answer(head, 200, to_head=False), Refuse)


@pytest.mark.parametrize(
    ("encoding", "encoded"), [("gzip", True), ("identity", False), ("IDENTITY", False), ("", False)]
)
def test_an_encoded_body_is_known(encoding: str, encoded: bool) -> None:  # noqa: FBT001
    answer = read_answer(f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode(), 200, to_head=False)
    assert isinstance(answer, Answer)
    assert answer.encoded is encoded


def test_an_old_version_is_told_as_the_new_one_and_never_stays() -> None:
    answer = read_answer(
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n", 200, to_head=False
    )
    assert answer == Answer(
        200, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", Framing.LENGTH, encoded=False, stays_open=False
    )
