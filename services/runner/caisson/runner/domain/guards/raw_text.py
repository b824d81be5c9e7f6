"""The fallback: reading a script that does not parse as plain text. It finds less, and only what stands out."""

import re
from collections.abc import Iterator
from typing import Final

from caisson.runner.domain.guards import parameters as forms
from caisson.runner.domain.guards.script import Violation

_SENDING: Final = re.compile(r"(?:^|[\s;&|(`/])(?:curl|wget|https?|xh|requests|httpx|urllib|fetch)\b")
_ASSIGNED: Final = re.compile(
    r"(?:^|[\n;&|({`]|\b(?:then|do|else|export|declare|typeset|readonly|local|env|time|command)\b)[ \t]{0,64}"
    r"(?:-\w{1,8}[ \t]{1,64}){0,4}(?:[A-Za-z_]\w{0,64}=[^\s;&|]{0,128}[ \t]{1,64}){0,8}"
    r"([A-Z][A-Z_]{2,20})\+?=([^\s;&|)]{0,256})"
)
_TAKEN: Final = re.compile(r"(?:^|[\n;&|({`])[ \t]{0,64}unset[ \t]{1,64}(?:-v[ \t]{1,64})?([A-Z][A-Z_]{2,20})\b")
_PARAMETER: Final = re.compile(
    r"[?&]([\w.%\[\]-]{1,80})=([^&#;\s\"'<>|)\\]{0,256})"
    r"|[\"']([\w.-]{1,80})[\"']?[ \t]{0,8}:[ \t]{0,8}[\"']?([^\"'\s,}\]]{1,256})"
)


def sends_requests(text: str) -> bool:
    """Say whether a request tool or library is named at all."""
    return _SENDING.search(text) is not None


def assignments(text: str) -> Iterator[tuple[str, str | None, int, int]]:
    """Yield (name, value or None where it is unset, start, end)."""
    for found in _ASSIGNED.finditer(text):
        yield found[1], found[2], found.start(1), found.end()
    for found in _TAKEN.finditer(text):
        yield found[1], None, found.start(1), found.end()


def parameters(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield (folded name, literal value, start, end) of query parameters, headers and JSON members."""
    for found in _PARAMETER.finditer(text):
        name, value = (found[1], found[2]) if found[1] is not None else (found[3], found[4])
        for literal in forms.literal(name, value):
            yield literal.name, literal.value, found.start(), found.end()


def violation(guard: str, reason: str, text: str, start: int, end: int) -> Violation:
    """Return a violation at a range of characters."""
    before = len(text[:start].encode(errors="replace"))
    length = len(text[start:end].encode(errors="replace"))
    return Violation(guard=guard, reason=reason, text=text, start=before, end=before + length)
