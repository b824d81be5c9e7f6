"""The layers of memory that are stored. The working layer lives in one model call and is never stored."""

from enum import StrEnum


class Layer(StrEnum):
    """How long a memory lives and what admits it."""

    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


FACTUAL = frozenset({Layer.SEMANTIC, Layer.PROCEDURAL})
"""Where a newer fact of the same subject and attribute replaces the older."""


class Status(StrEnum):
    """Active is searched; cold is listed and woken; superseded is history."""

    ACTIVE = "active"
    COLD = "cold"
    SUPERSEDED = "superseded"
