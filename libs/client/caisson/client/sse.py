"""The WHATWG event-stream format as a pure parser: bytes in, whole events out.

Invariant: `last_event_id` moves only with a completed event block, so an event cut off half-way is asked for again.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6.
"""

import codecs
from dataclasses import dataclass

MAX_EVENT_CHARS = 16 * 1024 * 1024


class EventTooLarge(ValueError):
    """One event exceeds the parser's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One dispatched event. `id` is the id in its own block, None where the block had none."""

    type: str
    data: str
    id: str | None


class Parser:
    """The state of one connection. `last_event_id` is what a reconnect sends; empty means nothing."""

    def __init__(self, last_event_id: str = "", *, max_event_chars: int = MAX_EVENT_CHARS) -> None:
        self.last_event_id = last_event_id
        self._max_event_chars = max_event_chars
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._rest = ""
        self._started = False
        self._after_cr = False
        self._size = 0
        self._id_buffer = last_event_id
        self._reset_block()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            EventTooLarge: the stream sends an event without end.
        """
        events = []
        for line in self._lines(self._decode(chunk)):
            event = self._take_line(line)
            if event is not None:
                events.append(event)
        if self._size + len(self._rest) > self._max_event_chars:
            raise EventTooLarge(f"an event has more than {self._max_event_chars} characters")
        return events

    def _reset_block(self) -> None:
        self._type = ""
        self._data: list[str] = []
        self._block_id: str | None = None
        self._size = 0

    def _lines(self, text: str) -> list[str]:
        if not self._started and text:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if text.endswith("\r"):
            self._after_cr = True
        *lines, self._rest = (self._rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return lines

    def _take_line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        self._take_field(name, value.removeprefix(" "))
        return None

    def _take_field(self, name: str, value: str) -> None:
        match name:
            case "event":
                self._type = value
            case "data":
                self._data.append(value)
                self._size += len(value)
            case "id" if "\0" not in value:
                self._id_buffer = self._block_id = value
            case _:
                pass  # a comment (empty name), a reconnection time (`Retries` decides), a field of another version

    def _dispatch(self) -> ServerEvent | None:
        self.last_event_id = self._id_buffer
        event = None
        if self._data:
            event = ServerEvent(type=self._type or "message", data="\n".join(self._data), id=self._block_id)
        self._reset_block()
        return event
