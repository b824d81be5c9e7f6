"""One decision per request: forward these exact bytes, or refuse.

Invariant: what is checked is what is sent; the head in `Forward` goes to the upstream unchanged.
"""

from dataclasses import dataclass, field

from caisson.proxy.domain.bodies import check_body
from caisson.proxy.domain.callers import Caller
from caisson.proxy.domain.credentials import Vault
from caisson.proxy.domain.heads import write_head
from caisson.proxy.domain.places import NOTHING, Findings, Location
from caisson.proxy.domain.policies import Policies
from caisson.proxy.domain.preparation import Prepared, prepare
from caisson.proxy.domain.queries import rewrite_query
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Request
from caisson.proxy.domain.routes import Route, find_route
from caisson.proxy.domain.targets import read_path, split_target

_MAX_ROUTES = 256
_MAX_PATH_BYTES = 512
"""What is remembered per run: beyond these bounds a path is looked at each time."""


@dataclass(slots=True)
class Forward:
    """Send this. `head` is complete but for the lines that frame the body and the empty line.

    `collects` says that the body must be complete before it can be rewritten and sent. Not frozen: one is made for
    every request.
    """

    route: Route
    prepared: Prepared
    findings: Findings
    head: bytes = field(repr=False)
    collects: bool


def decide(request: Request, caller: Caller, policies: Policies, vault: Vault) -> Forward | Refuse:
    """Decide about a request of a known caller."""
    split = split_target(request.target)
    if isinstance(split, Refuse):
        return split
    path, query = split
    if caller.routed_by is not policies:
        caller.routes = {}
        caller.routed_by = policies
    route = caller.routes.get((request.method, path))
    if route is None:
        found = _find_route(request.method, path, caller, policies, vault)
        if isinstance(found, Refuse):
            return found
        route = found
    return _forward(request, route, query)


def _forward(request: Request, route: Route, query: bytes | None) -> Forward | Refuse:
    prepared = route.prepared
    collects = False
    if request.length != 0:
        refusal = check_body(request, prepared.policy)
        if refusal is not None:
            return refusal
        collects = bool(prepared.policy.places.documents)
    findings = route.findings.copy()
    for place, pair in prepared.pairs:
        query, found = rewrite_query(query, place.spellings, pair, prepared.tenant)
        if found is not NOTHING:
            findings.append((Location.QUERY, found))
    head, found = write_head(request, route, query)
    if found is not NOTHING:
        findings.append((Location.HEADER, found))
    return Forward(route, prepared, findings, head, collects)


def _find_route(method: bytes, raw_path: bytes, caller: Caller, policies: Policies, vault: Vault) -> Route | Refuse:
    target = read_path(raw_path)
    if isinstance(target, Refuse):
        return target
    prepared = _prepare(target.upstream, caller, policies, vault)
    if isinstance(prepared, Refuse):
        return prepared
    route = find_route(method, target.path, prepared, caller.context)
    if isinstance(route, Route) and len(raw_path) <= _MAX_PATH_BYTES:
        if len(caller.routes) >= _MAX_ROUTES:
            caller.routes.clear()
        caller.routes[method, raw_path] = route
    return route


def _prepare(name: str, caller: Caller, policies: Policies, vault: Vault) -> Prepared | Refuse:
    policy = policies.get(name)
    if policy is None:
        return Refuse(
            reason=Reason.UPSTREAM_UNKNOWN,
            detail=f"There is no such upstream. The first path segment must be one of: {', '.join(policies)}.",
        )
    prepared = caller.prepared.get(name)
    if prepared is not None and prepared.policy is policy:
        return prepared
    fresh = prepare(caller.context, policy, vault)
    if not isinstance(fresh, Refuse):
        caller.prepared[name] = fresh
    return fresh
