"""The places where an upstream expects the tenant, and what was found there.

Invariant: after a rewrite exactly one trusted value stands at the place; every other byte is what the client sent.
"""

from dataclasses import dataclass
from enum import StrEnum

from caisson.proxy.domain.spelling import Spellings, fold
from caisson.proxy.domain.templates import Template


class Location(StrEnum):
    """Where in a request."""

    QUERY = "query"
    HEADER = "header"
    PATH = "path"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Found:
    """What the client had written at a place: something, and something other than the trusted value."""

    written: bool
    foreign: bool


NOTHING = Found(written=False, foreign=False)
TRUSTED = Found(written=True, foreign=False)
FOREIGN = Found(written=True, foreign=True)

Findings = list[tuple[Location, Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlace:
    """A query key; `spellings` knows its other forms."""

    key: str
    spellings: Spellings

    @classmethod
    def of(cls, key: str) -> "QueryPlace":
        """Return the place of a key."""
        return cls(key=key, spellings=Spellings(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPlace:
    """A member of the JSON body: the keys that lead to it, as declared and folded."""

    keys: tuple[str, ...]

    def folded(self) -> tuple[str, ...]:
        """Return the keys as spellings are compared."""
        return tuple(fold(key) for key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Every declared place of one upstream; `headers` holds the names as they are written on the
    wire, `paths` templates with `{tenant}`."""

    queries: tuple[QueryPlace, ...] = ()
    headers: tuple[bytes, ...] = ()
    paths: tuple[Template, ...] = ()
    documents: tuple[JsonPlace, ...] = ()
