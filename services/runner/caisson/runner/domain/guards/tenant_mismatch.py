"""The guard against another tenant's id in a request.

Invariant: only a literal value is a violation; a variable, a template or the trusted id never is.
"""

from collections.abc import Iterator
from typing import Final

from caisson.runner.domain.guards import parameters, raw_text
from caisson.runner.domain.guards.decision import Trusted
from caisson.runner.domain.guards.parameters import Parameter
from caisson.runner.domain.guards.requests import Origin, Text, pieces, request_texts, urls_in
from caisson.runner.domain.guards.script import Script, Violation

GUARD: Final = "tenant_mismatch"
_CERTAIN: Final = frozenset({"tenantid", "xtenantid", "tenantids"})
_LIKELY: Final = frozenset({"tenant", "xtenant"})
_SEGMENTS: Final = frozenset({"tenant", "tenants"})
_NO_IDS: Final = frozenset({"me", "self", "current", "search", "list", "count", "mine", "_search", "schema"})


def find(script: Script, trusted: Trusted) -> Violation | None:
    """Return the first request of a script that names another tenant."""
    for text in request_texts(script):
        for value in tenants_in(text, trusted):
            if trusted.tenant_id not in parameters.spellings(value):
                return Violation(
                    guard=GUARD,
                    reason=_reason(value, trusted),
                    text=script.text,
                    start=text.word.start,
                    end=text.word.end,
                )
    return None


def find_raw(text: str, trusted: Trusted) -> Violation | None:
    """Return the first parameter of unparsed text that names another tenant, if the text sends requests at all."""
    if not raw_text.sends_requests(text):
        return None
    for name, value, start, end in raw_text.parameters(text):
        if name in _CERTAIN and trusted.tenant_id not in parameters.spellings(value):
            return raw_text.violation(GUARD, _reason(value, trusted), text, start, end)
    return None


def tenants_in(text: Text, trusted: Trusted) -> Iterator[str]:
    """Yield the literal tenant ids of a text."""
    is_program = text.origin in {Origin.PROGRAM, Origin.FILE}
    for found in _parameters(text):
        if found.name in _CERTAIN or (found.name in _LIKELY and not is_program and " " not in found.value):
            yield found.value
    for url in urls_in(text, trusted.environment.get("API_HOST", "")):
        yield from (
            value
            for segment, value in parameters.in_path(url)
            if segment in _SEGMENTS and value.lower() not in _NO_IDS
        )


def _parameters(text: Text) -> Iterator[Parameter]:
    for piece in pieces(text):
        yield from parameters.in_query(piece)
        yield from parameters.in_headers(piece)
        if text.origin is not Origin.FILE:
            yield from parameters.in_json(piece)
        if text.origin in {Origin.ARGUMENT, Origin.BODY}:
            yield from parameters.in_form(piece)
        if text.origin is Origin.PROGRAM:
            yield from parameters.in_assignments(piece)


def _reason(value: str, trusted: Trusted) -> str:
    return (
        f"This run belongs to the tenant {trusted.tenant_id!r}, so a request cannot name {value[:64]!r}: "
        'use "$TENANT_ID" as the tenant id.'
    )
