"""What is told about requests: one audit record each, and a security report for each denial or rewrite.

Invariant: no record holds a credential, a query, a body, or a value that a client wrote for a tenant.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from caisson.common.ids import Ids
from caisson.proxy.domain.places import Findings, Location
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.routes import Route

_MAX_SNIPPET_CHARS = 200
_TOKEN = re.compile(r"[A-Za-z0-9_\-+=~%]{20,}")
_USERINFO = re.compile(r"//[^/@]*@")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


@dataclass(slots=True)
class Audit:
    """One request. Not frozen, and told by reference: one is made for every request.

    `ids` are None for a request of an unknown run, `route` for one that was refused, `upstream` for one that meant
    none. `reason` is the code of a refusal or failure, `started_s` is on this process's monotonic clock, `findings`
    are the places where the client had written a tenant, `echoed` says that the answer held the credential,
    `traceparent` is the trace of the run.
    """

    ids: Ids | None
    route: Route | None
    upstream: str | None
    method: bytes
    status: int
    reason: Reason | None
    bytes_in: int
    bytes_out: int
    started_s: float
    duration_s: float
    findings: Findings
    echoed: bool
    traceparent: str | None


class Recorder(Protocol):
    """Takes records without waiting for anybody."""

    @property
    def requested(self) -> Callable[[Audit], None]:
        """Take the record of a request that is over."""

    def refused(self, ids: Ids | None, refusal: Refuse, *, upstream: str | None, snippet: str) -> None:
        """A request was refused."""

    def rewrote(self, ids: Ids, *, upstream: str, location: Location, snippet: str) -> None:
        """A foreign tenant value was replaced."""


def write_snippet(method: bytes, target: bytes) -> str:
    """Write the method and path of a request, without query, with what looks like a credential masked."""
    path = target.partition(b"?")[0].decode("latin-1")
    text = _TOKEN.sub("***", _USERINFO.sub("//***@", path))
    return _UNPRINTABLE.sub("?", f"{method.decode('latin-1')} {text}")[:_MAX_SNIPPET_CHARS]
