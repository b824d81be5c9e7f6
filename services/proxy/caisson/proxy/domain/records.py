"""What is told about requests: one audit record each, and a security report for each denial or rewrite.

Invariant: no record holds a credential, a query, a body, or a value that a client wrote for a tenant.
"""

import re
from typing import NamedTuple, Protocol

from caisson.common.ids import Ids
from caisson.proxy.domain.places import Location
from caisson.proxy.domain.refusals import Reason, Refuse

_MAX_SNIPPET_CHARS = 200
_TOKEN = re.compile(r"[A-Za-z0-9_\-+=~%]{20,}")
_USERINFO = re.compile(r"//[^/@]*@")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


class Audit(NamedTuple):
    """One request. `template` is the matched allowance, `rewritten` the places where the client had written a tenant.

    `ids` are None for a request of an unknown run, `reason` is the code of a refusal or failure, `started_s` is on
    this process's monotonic clock.
    """

    ids: Ids | None
    upstream: str | None
    method: bytes
    template: str | None
    status: int
    reason: Reason | None
    bytes_in: int
    bytes_out: int
    started_s: float
    duration_s: float
    rewritten: tuple[Location, ...]
    credential: str | None
    echoed: bool


class Recorder(Protocol):
    """Takes records without waiting for anybody."""

    def requested(self, audit: Audit) -> None:
        """A request is over."""

    def refused(self, ids: Ids | None, refusal: Refuse, *, upstream: str | None, snippet: str) -> None:
        """A request was refused."""

    def rewrote(self, ids: Ids, *, upstream: str, location: Location, snippet: str) -> None:
        """A foreign tenant value was replaced."""


def write_snippet(method: bytes, target: bytes) -> str:
    """Write the method and path of a request, without query, with what looks like a credential masked."""
    path = target.partition(b"?")[0].decode("latin-1")
    text = _TOKEN.sub("***", _USERINFO.sub("//***@", path))
    return _UNPRINTABLE.sub("?", f"{method.decode('latin-1')} {text}")[:_MAX_SNIPPET_CHARS]
