"""The head of an upstream's answer.

Invariant: hop-by-hop fields end here; everything else goes on as the very bytes that came.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

from caisson.proxy.domain.refusals import Reason, Refuse

SWITCHING_PROTOCOLS = 101
FIRST_FINAL = 200
_BODYLESS = frozenset({204, 304})
_NOT_NOMINATED = frozenset({b"", b"close", b"keep-alive", b"upgrade"})
_HTTP10 = b"HTTP/1.0"
_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_BYTES = 128
_MAX_NOMINATED = 32
_FIELD = re.compile(
    rb"\r\n(?:content-length|transfer-encoding|content-encoding|connection|keep-alive|te|upgrade|proxy-[^:\r]*):[^\r]*",
    re.IGNORECASE,
)


class Framing(IntEnum):
    """How an answer's body ends."""

    NONE = 0
    LENGTH = 1
    CHUNKED = 2
    CLOSE = 3


@dataclass(slots=True)
class Answer:
    """An answer's head: `lines` are what goes on, `encoded` says that its body is compressed,
    `stays_open` that the connection goes on after it.
    """

    status: int
    lines: bytes
    framing: Framing
    encoded: bool
    stays_open: bool


class _Effect(IntEnum):
    """What a field means for the answer; from DROP on, it ends here."""

    LENGTH = 0
    IDENTITY = 1
    ENCODED = 2
    DROP = 3
    CHUNKED = 4
    CLOSES = 5
    NOMINATES = 6
    MALFORMED = 7


class _Effects(dict[bytes, _Effect]):
    """The effect of a field as it stands in a head; remembers what it has seen, within bounds."""

    def __missing__(self, field: bytes) -> _Effect:
        name, _, value = field.strip().lower().partition(b":")
        effect = _decide(name, value.strip())
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        if len(field) <= _MAX_REMEMBERED_BYTES:
            self[field] = effect
        return effect


_effects = _Effects()


# Looked up for every answer: a module's name costs a quarter of an enumeration's member.
_LENGTH, _ENCODED, _DROP, _CLOSES = _Effect.LENGTH, _Effect.ENCODED, _Effect.DROP, _Effect.CLOSES
_BY_LENGTH, _BY_CLOSING = Framing.LENGTH, Framing.CLOSE


def read_answer(head: bytes, status: int, *, to_head: bool) -> Answer | Refuse:
    """Read a well-formed head: how its body is framed, and what of it goes on."""
    framing, encoded, stays_open = _BY_CLOSING, False, True
    lines = head[:-2]
    for field in _FIELD.findall(head):
        effect = _effects[field]
        if effect is _LENGTH:
            framing = _BY_LENGTH
        elif effect < _DROP:
            encoded = effect is _ENCODED
        else:
            lines = lines.replace(field + b"\r\n", b"\r\n", 1)
            if effect is not _DROP:
                if effect is _Effect.MALFORMED:
                    return upstream_malformed("its Transfer-Encoding or Connection cannot be followed")
                framing = Framing.CHUNKED if effect is _Effect.CHUNKED else framing
                stays_open &= effect < _CLOSES
                lines = _drop_nominated(lines, field) if effect is _Effect.NOMINATES else lines
    if to_head or status < FIRST_FINAL or status in _BODYLESS:
        framing = Framing.NONE
    if lines.startswith(_HTTP10):
        lines, stays_open = b"HTTP/1.1" + lines[len(_HTTP10) :], False
    return Answer(status, lines, framing, encoded, stays_open and framing is not _BY_CLOSING)


def _decide(name: bytes, value: bytes) -> _Effect:
    match name:
        case b"content-length":
            return _Effect.LENGTH
        case b"content-encoding":
            return _Effect.IDENTITY if value in {b"", b"identity"} else _Effect.ENCODED
        case b"transfer-encoding":
            return _Effect.CHUNKED if value == b"chunked" else _Effect.MALFORMED
        case b"connection":
            names = {part.strip() for part in value.split(b",")}
            if len(names) > _MAX_NOMINATED:
                return _Effect.MALFORMED
            if names - _NOT_NOMINATED:
                return _Effect.NOMINATES
            return _Effect.CLOSES if b"close" in names else _Effect.DROP
    return _Effect.DROP


def _drop_nominated(lines: bytes, field: bytes) -> bytes:
    for name in {part.strip() for part in field.partition(b":")[2].lower().split(b",")} - _NOT_NOMINATED:
        lines = re.sub(rb"\r\n%b:[^\r]*" % re.escape(name), b"", lines, flags=re.IGNORECASE)
    return lines


def write_switch(answer: Answer) -> bytes:
    """Write the head of a `101 Switching Protocols` to a WebSocket."""
    return answer.lines + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def write_interim(answer: Answer) -> bytes:
    """Write the head of an interim answer."""
    return answer.lines + b"\r\n"


def upstream_malformed(why: str) -> Refuse:
    """Refuse an answer that is not well-formed HTTP/1.1."""
    return Refuse(reason=Reason.UPSTREAM_MALFORMED, detail=f"The upstream's answer is malformed: {why}.")
