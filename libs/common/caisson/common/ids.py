"""Ids and their subject encoding.

Invariant: `encode_token` is injective and its image is `[A-Za-z0-9_-]+` without the absent mark "-", so two ids
can never meet in a subject.
"""

import secrets
import threading
import time
import unicodedata
from dataclasses import dataclass
from typing import NewType

from caisson.common.errors import InvalidId

TenantId = NewType("TenantId", str)
UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
StepId = NewType("StepId", str)

MAX_ID_CHARS = 128
ABSENT = "-"

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_BITS = 48
_RANDOM_BITS = 80
_STEP_BITS = 64
_SYMBOL_BITS = 5
_ULID_CHARS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The ids that travel with a message; a field that does not apply is None."""

    tenant: TenantId | None = None
    user: UserId | None = None
    session: SessionId | None = None
    run: RunId | None = None
    step: StepId | None = None

    def tokens(self) -> tuple[str, ...]:
        """Return the five subject tokens: tenant, user, session, run, step."""
        values = (self.tenant, self.user, self.session, self.run, self.step)
        return tuple(ABSENT if value is None else encode_token(value) for value in values)


def new_id(prefix: str) -> str:
    """Return `prefix_` and 26 Crockford base-32 symbols: 48 bits of Unix milliseconds, then 80 random bits (ULID).

    The ids of one process sort in the order in which they were made, also within a millisecond and when the clock is
    set back: such an id lies a random distance of up to 2**64 after the one before it.
    """
    number = _numbers.following()
    shifts = range((_ULID_CHARS - 1) * _SYMBOL_BITS, -1, -_SYMBOL_BITS)
    return f"{prefix}_" + "".join(_CROCKFORD[number >> shift & 31] for shift in shifts)


class _Numbers:
    """The numbers that ids are made of, each greater than the last."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def following(self) -> int:
        with self._lock:
            milliseconds = time.time_ns() // 1_000_000
            if milliseconds > self._last >> _RANDOM_BITS:
                self._last = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
            else:
                self._last += 1 + secrets.randbits(_STEP_BITS)
            return self._last


_numbers = _Numbers()


def check_external_id(value: str, *, field: str) -> str:
    """Return `value` if it may be a tenant or user id: 1 to 128 printable characters of any script.

    Raises:
        InvalidId: naming `field` and the limit.
    """
    if not 1 <= len(value) <= MAX_ID_CHARS:
        raise InvalidId(f"{field} must have 1 to {MAX_ID_CHARS} characters, not {len(value)}", field=field)
    if not value.isprintable() or any(unicodedata.category(char) == "Cs" for char in value):
        raise InvalidId(f"{field} must consist of printable characters", field=field)
    if value != value.strip():
        raise InvalidId(f"{field} must not begin or end with a space", field=field)
    return value


def encode_token(value: str) -> str:
    """Encode an id as one subject token: every UTF-8 byte outside `[A-Za-z0-9-]` becomes `_` and two hex digits."""
    if value == ABSENT:
        return "_2d"
    return "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in value.encode())


def decode_token(token: str) -> str:
    """Invert `encode_token`.

    Raises:
        InvalidId: when `token` is not the encoding of any id.
    """
    raw = bytearray()
    position = 0
    try:
        while position < len(token):
            if token[position] == "_":
                raw.append(int(token[position + 1 : position + 3], 16))
                position += 3
            else:
                raw.append(ord(token[position]))
                position += 1
        value = raw.decode()
    except ValueError as error:
        raise InvalidId(f"not a subject token: {token!r}", field="subject") from error
    if not token or encode_token(value) != token:
        raise InvalidId(f"not a canonical subject token: {token!r}", field="subject")
    return value
