"""Where a method and a path lead, for one caller.

Invariant: every rule reads the path as rewritten, which is the path on the wire.
"""

from dataclasses import dataclass, field

from caisson.common.contexts import RunContext
from caisson.proxy.domain.places import FOREIGN, TRUSTED, Findings, Location
from caisson.proxy.domain.policies import Policy, Rule
from caisson.proxy.domain.preparation import Prepared, not_expressible
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.targets import unquote_segment

_WITHOUT_SIDE_EFFECTS = frozenset({b"GET", b"HEAD", b"OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An allowed method and path. `start` is the request line up to the query."""

    prepared: Prepared
    template: str
    start: bytes
    has_side_effects: bool
    findings: Findings = field(default_factory=list)


def find_route(method: bytes, path: bytes, prepared: Prepared, context: RunContext) -> Route | Refuse:
    """Rewrite a canonical path and hold it against the policy."""
    policy = prepared.policy
    findings: Findings = []
    rewritten = _rewrite(path, prepared, findings)
    if isinstance(rewritten, Refuse):
        return rewritten
    rule = _allow(method, rewritten, policy)
    if isinstance(rule, Refuse):
        return rule
    refusal = _check_datasets(rewritten, policy, context.datasets)
    if refusal is not None:
        return refusal
    return Route(
        prepared=prepared,
        template=rule.template.text,
        start=b"%b %b%b" % (method, policy.base_path, rewritten),
        has_side_effects=method not in _WITHOUT_SIDE_EFFECTS,
        findings=findings,
    )


def _rewrite(path: bytes, prepared: Prepared, findings: Findings) -> bytes | Refuse:
    for template in prepared.policy.places.paths:
        match = template.pattern.fullmatch(path)
        if match is None:
            continue
        if prepared.segment is None:
            return not_expressible("a path")
        begins, ends = match.span("tenant")
        findings.append((Location.PATH, TRUSTED if path[begins:ends] == prepared.segment else FOREIGN))
        path = path[:begins] + prepared.segment + path[ends:]
    return path


def _allow(method: bytes, path: bytes, policy: Policy) -> Rule | Refuse:
    methods: set[str] = set()
    for rule in policy.rules:
        if rule.template.pattern.fullmatch(path):
            if method in rule.methods:
                return rule
            methods |= {allowed.decode() for allowed in rule.methods}
    if methods:
        return Refuse(
            reason=Reason.METHOD_DENIED,
            detail=f"The upstream {policy.name!r} allows only {', '.join(sorted(methods))} on this path.",
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
