"""One audit record as JSON.

Invariant: it says nothing that the request's client had written, but its method.
"""

import json
from functools import lru_cache
from time import gmtime, strftime

from caisson.proxy.domain.records import Audit


def write_line(audit: Audit, offset_s: float) -> str:
    """Write a record; `offset_s` leads from this process's monotonic clock to Unix time.

    Written by hand, because one is written for every request: a general encoder takes three times as long.
    """
    seconds, fraction = divmod(audit.started_s + offset_s, 1)
    route = audit.route
    place = _write_place(
        audit.upstream,
        audit.method,
        None if route is None else route.template,
        None if route is None else route.prepared.credential,
    )
    return (
        f'{{"started_at":"{_write_second(int(seconds))}.{int(fraction * 1000):03d}Z",{place},'
        f'"status":{audit.status},"reason":{"null" if audit.reason is None else json.dumps(audit.reason)},'
        f'"bytes_in":{audit.bytes_in},"bytes_out":{audit.bytes_out},"duration_ms":{audit.duration_s * 1000:.3f},'
        f'"rewritten":{_write_rewritten(audit) if audit.findings else "[]"},'
        f'"credential_echoed":{"true" if audit.echoed else "false"}}}'
    )


@lru_cache(maxsize=1024)
def _write_place(upstream: str | None, method: bytes, template: str | None, credential: str | None) -> str:
    told = {"upstream": upstream, "method": method.decode("latin-1"), "path": template, "credential": credential}
    return json.dumps(told)[1:-1]


def _write_rewritten(audit: Audit) -> str:
    return json.dumps(sorted({location for location, _ in audit.findings}))


@lru_cache(maxsize=64)
def _write_second(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
