"""The parser against the event-stream rules of the WHATWG HTML standard, section 9.2.6."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.client.sse import EventTooLarge, Parser, ServerEvent


def message(data: str, *, kind: str = "message", id_: str | None = None) -> ServerEvent:
    return ServerEvent(type=kind, data=data, id=id_)


CASES: list[tuple[str, bytes, list[ServerEvent], str]] = [
    (
        "an event with all fields",
        b"event: run.queued\nid: 1\ndata: {}\n\n",
        [message("{}", kind="run.queued", id_="1")],
        "1",
    ),
    ("several data lines are joined", b"data: a\ndata: b\n\n", [message("a\nb")], ""),
    ("one space after the colon is dropped, not two", b"data:  a\n\n", [message(" a")], ""),
    ("no space after the colon", b"data:a\n\n", [message("a")], ""),
    ("a line without a colon is a field with an empty value", b"data\ndata\n\n", [message("\n")], ""),
    ("an empty data field still makes an event", b"data\n\n", [message("")], ""),
    ("comments say nothing", b": still here\n\ndata: a\n: inside\n\n", [message("a")], ""),
    ("a block without data is no event", b"event: x\n\ndata: a\n\n", [message("a")], ""),
    ("a block without data still moves the id", b"id: 9\n\n", [], "9"),
    (
        "an id stays for later events without one",
        b"id: 7\ndata: a\n\ndata: b\n\n",
        [message("a", id_="7"), message("b")],
        "7",
    ),
    ("an empty id clears", b"id: 7\ndata: a\n\nid:\ndata: b\n\n", [message("a", id_="7"), message("b", id_="")], ""),
    ("an id field without a colon clears, too", b"id: 7\ndata: a\n\nid\n\n", [message("a", id_="7")], ""),
    (
        "an id with NUL is ignored",
        b"id: 7\ndata: a\n\nid: 8\x00\ndata: b\n\n",
        [message("a", id_="7"), message("b")],
        "7",
    ),
    (
        "an event cut off before its blank line is none, nor is its id",
        b"id: 7\ndata: a\n\nid: 8\ndata: b\n",
        [message("a", id_="7")],
        "7",
    ),
    ("CRLF ends a line", b"id: 1\r\ndata: a\r\n\r\n", [message("a", id_="1")], "1"),
    ("CR ends a line", b"data: a\rdata: b\r\r", [message("a\nb")], ""),
    ("a byte order mark at the start is dropped", b"\xef\xbb\xbfdata: a\n\n", [message("a")], ""),
    ("one later is not", b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n", [message("a"), message("c")], ""),
    (
        "other line separators of Unicode are data",
        "data: a\u2028b\x85c\x0bd\n\n".encode(),
        [message("a\u2028b\x85c\x0bd")],
        "",
    ),
    ("invalid UTF-8 is replaced", b"data: \xff\n\n", [message("\ufffd")], ""),
    ("unknown fields are ignored", b"foo: bar\ndata: a\n\n", [message("a")], ""),
    ("field names are exact", b"Data: a\n data: b\ndata: c\n\n", [message("c")], ""),
    ("a colon in the value stays", b"data: a: b\n\n", [message("a: b")], ""),
    ("the last event field wins", b"event: a\nevent: b\ndata: x\n\n", [message("x", kind="b")], ""),
    ("an event type does not leak into the next block", b"event: a\n\ndata: x\n\n", [message("x")], ""),
]


@pytest.mark.parametrize(
    ("stream", "events", "last_id"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_streams_are_read_as_the_standard_says_however_they_are_cut(
    stream: bytes, events: list[ServerEvent], last_id: str
) -> None:
    for size in (1, 2, 3, len(stream)):
        parser = Parser()
        found = [event for at in range(0, len(stream), size) for event in parser.feed(stream[at : at + size])]
        assert (found, parser.last_event_id) == (events, last_id)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_no_bytes_and_no_cuts_break_the_parser(stream: bytes, cuts: list[int]) -> None:
    whole, pieces = Parser(), Parser()
    edges = [0, *sorted(cuts), len(stream)]
    found = [event for start, end in pairwise(edges) for event in pieces.feed(stream[start:end])]
    assert found == whole.feed(stream)
    assert pieces.last_event_id == whole.last_event_id


def test_a_parser_for_a_reconnect_begins_with_the_id_that_was_sent() -> None:
    parser = Parser("41")
    parser.feed(b": hello\n\nid: 42\nda")
    assert parser.last_event_id == "41"


def test_reconnection_times_are_no_events_and_change_none() -> None:
    parser = Parser("41")
    for told in (b"250", b"soon", b"-1", b"9" * 5000):
        assert parser.feed(b"retry: " + told + b"\n\n") == []
    assert parser.last_event_id == "41"
    assert [event.data for event in parser.feed(b"data: x\nretry: 250\n\n")] == ["x"]


def test_an_event_without_end_is_refused() -> None:
    parser = Parser(max_event_chars=100)
    for _ in range(10):
        parser.feed(b"data: 0123456789\n")
    with pytest.raises(EventTooLarge):
        parser.feed(b"data: 0123456789\n")
