"""The request target, canonicalised once or refused.

Invariant: the path that policy reads is byte for byte the path on the wire, and no server can read another path out
of it: no dot segments, empty segments, encoded separators, path parameters or double encoding. The query stays as
it is.
"""

import re
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote_to_bytes

from caisson.proxy.domain.refusals import Reason, Refuse

_PLAIN_PATH = re.compile(rb"(?:/(?!\.+(?:/|\Z))[A-Za-z0-9\-._~!$'()*+,:@&=]+)*/?")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_FORBIDDEN = re.compile(r"[/\\\x00-\x1f\x7f]")
_KEPT_IN_SEGMENT = "-._~!$'()*+,:@&="


class Target(NamedTuple):
    """Which upstream (the first segment), and the canonical rest of the path."""

    upstream: str
    path: bytes


def split_target(raw: bytes) -> tuple[bytes, bytes | None] | Refuse:
    """Split an origin-form target into its path and its query (None without `?`)."""
    if raw[:1] != b"/":
        return _refuse("only the origin form is taken: a path that begins with /, without scheme and host")
    if b"#" in raw:
        return _refuse("a fragment (#) does not belong into a request; encode it as %23")
    path, mark, query = raw.partition(b"?")
    return path, query if mark else None


def read_path(path: bytes) -> Target | Refuse:
    """Read the path of a target."""
    if not _PLAIN_PATH.fullmatch(path):
        canonical = _canonical_path(path)
        if isinstance(canonical, Refuse):
            return canonical
        path = canonical
    _, name, *rest = path.split(b"/", 2)
    return Target(name.decode("ascii"), b"/" + rest[0] if rest else b"/")


def quote_segment(value: str) -> bytes | None:
    """Write a value as one path segment, or return None when it cannot be one."""
    segment = quote(value, safe="").encode()
    canonical = _canonical_segment(segment)
    return canonical if isinstance(canonical, bytes) else None


def unquote_segment(segment: bytes) -> str:
    """Read a canonical segment."""
    return unquote_to_bytes(segment).decode()


def _canonical_path(path: bytes) -> bytes | Refuse:
    segments = path[1:].split(b"/")
    if b"" in segments[:-1]:
        return _refuse("the path has an empty segment (//)")
    written = [b""]
    for segment in segments:
        canonical = _canonical_segment(segment)
        if isinstance(canonical, Refuse):
            return canonical
        written.append(canonical)
    return b"/".join(written)


def _canonical_segment(segment: bytes) -> bytes | Refuse:
    if b";" in segment:
        return _refuse("the path has a path parameter (;); encode a literal semicolon as %3B")
    if _BAD_ESCAPE.search(segment):
        return _refuse("the path has a % that is not followed by two hex digits; encode a literal % as %25")
    decoded = unquote_to_bytes(segment)
    if _ESCAPE.search(decoded):
        return _refuse("the path is percent-encoded twice")
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        return _refuse("the path is not percent-encoded UTF-8")
    for reading in (text, normalize("NFKC", text)):
        if _FORBIDDEN.search(reading):
            return _refuse("the path has an encoded slash, a backslash or a control character")
        if reading and not reading.strip(". "):
            return _refuse("the path has a dot segment; write the path without . and ..")
    return quote(text, safe=_KEPT_IN_SEGMENT).encode()


def _refuse(detail: str) -> Refuse:
    return Refuse(reason=Reason.TARGET_REFUSED, detail=f"The request target is refused: {detail}.")
