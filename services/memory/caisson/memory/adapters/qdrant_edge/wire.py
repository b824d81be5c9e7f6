"""What the service and the engine's process say to each other: calls and their answers, each a length and a pickle.

Invariant: nothing is read but from a socket pair of which these two hold the ends.
"""

import pickle
import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

LENGTH = struct.Struct("!I")
PAGE_POINTS = 64
"""Points of one write: the engine keeps its interpreter for a few milliseconds."""

Found = dict[str, float]
Offset = int | str | UUID


@dataclass(frozen=True, slots=True)
class Call:
    """Something to be done, by the name of a method of the engine."""

    number: int
    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of the call of that number: a result, or the code of an error and its detail."""

    number: int
    result: Any = None
    code: str | None = None


def framed(message: Call | Answer) -> bytes:
    """Return a message as it is sent."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


def opened(body: bytes | bytearray | memoryview) -> Any:
    """Return the message of a frame, without its length."""
    return pickle.loads(body)  # noqa: S301  # the other end is the process that we started, or that started us
