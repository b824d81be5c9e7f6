"""The head of a request as the upstream gets it.

Invariant: the client's other headers keep their names, values and order; what the proxy says comes after them.
"""

from caisson.proxy.domain.headers import Fate
from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found
from caisson.proxy.domain.requests import Request
from caisson.proxy.domain.routes import Route

_MAX_KNOWN = 64
# Looked up for every header: a module's name costs a quarter of an enumeration's member.
_PASS, _TENANT = Fate.PASS, Fate.TENANT


def write_head(request: Request, route: Route, query: bytes | None) -> tuple[bytes, Found]:
    """Write the head, but for the lines that frame the body and the empty line; tell the tenant that was found."""
    prepared = route.prepared
    known = request.known
    written = None if known is None else prepared.known.get(known)
    if written is None:
        written = _write_lines(request, route)
        if known is not None and len(prepared.known) < _MAX_KNOWN:
            prepared.known[known] = written
    lines, found = written
    if query is None:
        return route.start + lines, found
    return b"%b?%b%b" % (route.start, query, lines), found


def _write_lines(request: Request, route: Route) -> tuple[bytes, Found]:
    prepared = route.prepared
    fates = prepared.policy.fates
    found = NOTHING
    lines = [b" HTTP/1.1\r\nHost: %b\r\n" % prepared.policy.authority]
    for name, value in request.headers:
        fate = fates[name]
        if fate is _PASS:
            lines.append(b"%b: %b\r\n" % (name, value))
        elif fate is _TENANT and found is not FOREIGN:
            found = TRUSTED if value in {b"", prepared.header_value} else FOREIGN
    if request.is_special:
        _write_connection(request, route, lines)
    lines.append(prepared.tail)
    return b"".join(lines), found


def _write_connection(request: Request, route: Route, lines: list[bytes]) -> None:
    drops = [name + b":" for name in request.nominated]
    if request.asks_for_websocket and route.prepared.secret is not None and not route.prepared.policy.trusted:
        drops.append(b"sec-websocket-extensions:")  # compressed frames could not be searched for the credential
    lines[1:] = [line for line in lines[1:] if not line.lower().startswith(tuple(drops))]
    if request.asks_for_websocket:
        lines.append(b"Connection: Upgrade\r\nUpgrade: websocket\r\n")
    elif request.takes_trailers:
        lines.append(b"Connection: TE\r\nTE: trailers\r\n")
    if request.expects_continue and not route.prepared.policy.places.documents:
        lines.append(b"Expect: 100-continue\r\n")
    if request.declares_length and request.length == 0:
        lines.append(b"Content-Length: 0\r\n")
