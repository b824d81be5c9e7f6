"""Named values in the texts that requests are made of: query strings, forms, headers, JSON, paths.

Invariant: names and values are compared decoded; a value that is a template, a variable or empty is not a literal.
Every pattern is bounded, so the time is linear in the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import unquote, unquote_plus

from caisson.runner.domain.guards.words import UNKNOWN

_KEY: Final = r"([^\s=:&?#;,\"'<>{}()\x00]{1,80})"
_VALUE: Final = r"([^\s&#;\"'<>|)\\]{0,256})"
_QUERY: Final = re.compile(rf"[?&;]{_KEY}={_VALUE}")
_FORM: Final = re.compile(rf"(?:^|&){_KEY}(?:==|:=|@=|=){_VALUE}")
_HEADER: Final = re.compile(
    r"(?:^|[\n\"'])[ \t]{0,16}([A-Za-z0-9_.-]{1,80})[ \t]{0,16}:[ \t]{0,16}([^\n\r\"',{\[]{0,256})"
)
_JSON: Final = re.compile(
    r"[\"']((?:[^\"'\\\n]|\\.){1,80})[\"']\s{0,64}:\s{0,64}(?:\[\s{0,64})?"
    r"(?:[\"']((?:[^\"'\\\n]|\\.){0,256})[\"']|(-?\d[\w.+-]{0,40}))"
)
_NESTED: Final = re.compile(
    r"[\"']((?:[^\"'\\\n]|\\.){1,80})[\"']\s{0,64}:\s{0,64}\{[^{}]{0,512}?[\"']id[\"']\s{0,64}:\s{0,64}"
    r"(?:[\"']((?:[^\"'\\\n]|\\.){0,256})[\"']|(-?\d[\w.+-]{0,40}))"
)
_ASSIGNED: Final = re.compile(r"(?<![\w.\"'?&])([A-Za-z_]\w{0,79})\s{0,16}[=:]\s{0,16}[\"']([^\"'\n]{0,256})[\"']")
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_LOOSE: Final = re.compile(r"[-_\s]")
_TEMPLATE: Final = re.compile(r"[${}<>*\x00]|%[sv(]|%d(?![0-9A-Fa-f])|^:|^\.\.\.$")
_DECODED_TIMES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A name, folded to lower case without separators, and a literal value, decoded."""

    name: str
    value: str


def in_query(text: str) -> Iterator[Parameter]:
    """Yield the parameters of the URLs in a text."""
    yield from _found(_QUERY, text)


def in_form(text: str) -> Iterator[Parameter]:
    """Yield the fields of a form body or of a request tool's `name=value` words."""
    yield from _found(_FORM, text)


def in_headers(text: str) -> Iterator[Parameter]:
    """Yield the header lines of a text."""
    yield from _found(_HEADER, text)


def in_json(text: str) -> Iterator[Parameter]:
    """Yield the string and number members of JSON, or of a dictionary that looks like it; `tenant: {id: …}` too."""
    yield from _found(_JSON, text)
    for found in _NESTED.finditer(text):
        yield from literal(f"{found[1]}.id", found[2] if found[2] is not None else found[3])


def in_assignments(text: str) -> Iterator[Parameter]:
    """Yield `name = "value"` and `name: "value"` of a program."""
    yield from _found(_ASSIGNED, text)


def in_path(url: str) -> Iterator[tuple[str, str]]:
    """Yield each pair of neighbouring segments of a URL's path, the first folded, the second decoded and literal."""
    path = re.split(r"[?#\s]", url, maxsplit=1)[0]
    segments = [segment for segment in path.split("/") if segment]
    for first, second in pairwise(segments):
        value = _decoded(second)
        if not _TEMPLATE.search(value):
            yield fold(first), value


def fold(name: str) -> str:
    """Return the last part of a dotted or bracketed name, decoded, in lower case, without separators.

    A part named `id` keeps the one before it: `tenant[id]`, `tenant.id` and `Tenant-Id` are all `tenantid`.
    """
    parts = [_LOOSE.sub("", part) for part in re.split(r"[.\[\]]+", _decoded(name).lower())]
    parts = [part for part in parts if part]
    if len(parts) > 1 and parts[-1] in {"id", "ids"}:
        return "".join(parts[-2:])
    return parts[-1] if parts else ""


def _found(pattern: "re.Pattern[str]", text: str) -> Iterator[Parameter]:
    for found in pattern.finditer(text):
        yield from literal(found[1], next((group for group in found.groups()[1:] if group is not None), ""))


def literal(name: str, raw_value: str) -> Iterator[Parameter]:
    """Yield the parameter if its value is a literal."""
    value = _decoded(raw_value.strip())
    if value and not _TEMPLATE.search(raw_value) and UNKNOWN not in value:
        yield Parameter(name=fold(name), value=value)


def _decoded(text: str) -> str:
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    for _ in range(_DECODED_TIMES):
        decoded = unquote(text)
        if decoded == text:
            break
        text = decoded
    return text


def spellings(value: str) -> set[str]:
    """Return what a value may mean: as it stands, and with `+` for a space."""
    return {value, unquote_plus(value), value.strip("\"' ")}
