"""One decision per request: forward these exact bytes, or refuse.

Invariant: what is checked is what is sent. Every rule reads the path as rewritten, and the head in `Forward` goes to
the upstream unchanged.
"""

from dataclasses import dataclass, field

from caisson.proxy.domain.callers import Caller
from caisson.proxy.domain.credentials import Vault
from caisson.proxy.domain.documents import rewrite_document
from caisson.proxy.domain.headers import Fate
from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found, Location
from caisson.proxy.domain.policies import Policies, Policy, Rule
from caisson.proxy.domain.preparation import Prepared, not_expressible, prepare
from caisson.proxy.domain.queries import rewrite_query
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Request
from caisson.proxy.domain.targets import read_target, unquote_segment

_WITHOUT_SIDE_EFFECTS = frozenset({b"GET", b"HEAD", b"OPTIONS"})

Findings = list[tuple[Location, Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Send this. `head` is complete but for the lines that frame the body and the empty line.

    `collects` says that the body must be complete before it can be rewritten and sent.
    """

    prepared: Prepared
    template: str
    findings: Findings
    collects: bool
    websocket: bool
    has_side_effects: bool
    head: bytes = field(repr=False)


def decide(request: Request, caller: Caller, policies: Policies, vault: Vault) -> Forward | Refuse:
    """Decide about a request of a known caller."""
    target = read_target(request.target)
    if isinstance(target, Refuse):
        return target
    prepared = _prepare(target.upstream, caller, policies, vault)
    if isinstance(prepared, Refuse):
        return prepared
    findings: Findings = []
    path = _rewrite_path(target.path, prepared, findings)
    if isinstance(path, Refuse):
        return path
    policy = prepared.policy
    rule = _check(request, path, policy, caller.context.datasets)
    if isinstance(rule, Refuse):
        return rule
    return Forward(
        prepared=prepared,
        template=rule.template.text,
        findings=findings,
        collects=bool(policy.places.documents) and request.has_body,
        websocket=request.asks_for_websocket,
        has_side_effects=request.method not in _WITHOUT_SIDE_EFFECTS,
        head=_write_head(request, path, _rewrite_query(target.query, prepared, findings), prepared, findings),
    )


def rewrite_body(body: bytes, prepared: Prepared, findings: Findings) -> bytes:
    """Write the tenant into a JSON body at each declared place.

    Raises:
        Unrewritable: when it is not a JSON object.
    """
    for place in prepared.policy.places.documents:
        body, found = rewrite_document(body, place, prepared.tenant)
        if found is not NOTHING:
            findings.append((Location.JSON, found))
    return body


def body_limit(forward: Forward) -> int:
    """Return how many bytes of body the request may have."""
    return _body_limit(forward.prepared.policy)


def body_too_large(limit_bytes: int) -> Refuse:
    """Refuse a body beyond a limit."""
    return Refuse(
        reason=Reason.BODY_TOO_LARGE, detail=f"The request body is larger than {limit_bytes} bytes, the limit here."
    )


def body_not_rewritable(why: str) -> Refuse:
    """Refuse a body in which the tenant cannot be replaced."""
    return Refuse(
        reason=Reason.BODY_NOT_REWRITABLE,
        detail=f"The upstream takes the tenant from the JSON body, and this body cannot be rewritten: {why}.",
    )


def _body_limit(policy: Policy) -> int:
    limits = policy.limits
    return (
        min(limits.document_bytes, limits.request_body_bytes)
        if policy.places.documents
        else limits.request_body_bytes
    )


def _check_body(request: Request, policy: Policy) -> Refuse | None:
    if policy.places.documents and request.is_encoded:
        return body_not_rewritable("it is compressed")
    limit_bytes = _body_limit(policy)
    return body_too_large(limit_bytes) if (request.length or 0) > limit_bytes else None


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


def _rewrite_path(path: bytes, prepared: Prepared, findings: Findings) -> bytes | Refuse:
    for place in prepared.policy.places.paths:
        match = place.template.pattern.fullmatch(path)
        if match is None:
            continue
        if prepared.segment is None:
            return not_expressible("a path")
        begins, ends = match.span("tenant")
        findings.append((Location.PATH, TRUSTED if path[begins:ends] == prepared.segment else FOREIGN))
        path = path[:begins] + prepared.segment + path[ends:]
    return path


def _check(request: Request, path: bytes, policy: Policy, datasets: list[str]) -> Rule | Refuse:
    rule = _allow(request, path, policy)
    if isinstance(rule, Refuse):
        return rule
    refusal = _check_datasets(path, policy, datasets) if policy.datasets else None
    if refusal is None and request.has_body:
        refusal = _check_body(request, policy)
    return refusal or rule


def _allow(request: Request, path: bytes, policy: Policy) -> Rule | Refuse:
    methods: set[str] = set()
    for rule in policy.rules:
        if rule.template.pattern.fullmatch(path):
            if request.method in rule.methods:
                return rule
            methods |= {method.decode() for method in rule.methods}
    if methods:
        allowed = ", ".join(sorted(methods))
        return Refuse(
            reason=Reason.METHOD_DENIED,
            detail=f"The upstream {policy.name!r} allows only {allowed} on this path.",
        )
    paths = ", ".join(rule.template.text for rule in policy.rules)
    return Refuse(
        reason=Reason.PATH_DENIED,
        detail=f"The upstream {policy.name!r} does not allow this path. Allowed are: {paths}.",
    )


def _check_datasets(path: bytes, policy: Policy, datasets: list[str]) -> Refuse | None:
    for template in policy.datasets:
        match = template.pattern.fullmatch(path)
        if match is not None and unquote_segment(match["dataset"]) not in datasets:
            told = ", ".join(datasets) or "none"
            return Refuse(
                reason=Reason.DATASET_DENIED,
                detail=f"The dataset in the path does not belong to this run. Its datasets are: {told}.",
            )
    return None


def _rewrite_query(query: bytes | None, prepared: Prepared, findings: Findings) -> bytes | None:
    for place, pair in zip(prepared.policy.places.queries, prepared.pairs, strict=True):
        query, found = rewrite_query(query, place.spellings, pair, prepared.tenant)
        if found is not NOTHING:
            findings.append((Location.QUERY, found))
    return query


def _write_head(request: Request, path: bytes, query: bytes | None, prepared: Prepared, findings: Findings) -> bytes:
    policy = prepared.policy
    mark = b"" if query is None else b"?"
    target = b"%b%b%b%b" % (policy.base_path, path, mark, query or b"")
    lines = [b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (request.method, target, policy.authority)]
    fates = policy.fates
    found = NOTHING
    for name, value in request.headers:
        fate = fates[name]
        if fate is Fate.PASS:
            lines.append(b"%b: %b\r\n" % (name, value))
        elif fate is Fate.TENANT and found is not FOREIGN:
            found = TRUSTED if value in {b"", prepared.header_value} else FOREIGN
    if found is not NOTHING:
        findings.append((Location.HEADER, found))
    if request.nominated or request.expects_continue or request.takes_trailers:
        _write_connection(request, prepared, lines)
    lines.append(prepared.tail)
    return b"".join(lines)


def _write_connection(request: Request, prepared: Prepared, lines: list[bytes]) -> None:
    drops = [name + b":" for name in request.nominated]
    if request.asks_for_websocket and prepared.secret is not None and not prepared.policy.trusted:
        drops.append(b"sec-websocket-extensions:")
    lines[1:] = [line for line in lines[1:] if not line.lower().startswith(tuple(drops))]
    if request.asks_for_websocket:
        lines.append(b"Connection: Upgrade\r\nUpgrade: websocket\r\n")
    elif request.takes_trailers:
        lines.append(b"Connection: TE\r\nTE: trailers\r\n")
    if request.expects_continue and not prepared.policy.places.documents:
        lines.append(b"Expect: 100-continue\r\n")
