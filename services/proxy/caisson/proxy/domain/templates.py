"""Path templates: `*` is one segment, `{name}` is one segment with a name, `/**` at the end is any rest.

Invariant: a template is matched against canonical paths only, so it needs to know one spelling of each segment.
"""

import re
from dataclasses import dataclass

from caisson.proxy.domain.targets import quote_segment

_NAME = re.compile(r"\{([a-z_]+)\}")
_REST = "**"
_ONE = rb"[^/]+"


class TemplateInvalid(ValueError):
    """The text is not a path template; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A compiled template. `text` is what audits tell."""

    text: str
    pattern: re.Pattern[bytes]
    names: frozenset[str]


def compile_rule(text: str) -> Template:
    """Compile a template of what is allowed: case counts, a trailing slash counts."""
    return _compile(text, end=rb"", flags=0)


def compile_place(text: str) -> Template:
    """Compile a template of where a value stands: neither case nor a trailing slash hides the place."""
    return _compile(text, end=rb"/?", flags=re.IGNORECASE)


def _compile(text: str, *, end: bytes, flags: int) -> Template:
    if not text.startswith("/"):
        raise TemplateInvalid("a path template begins with /")
    segments = text[1:].split("/")
    rest = segments[-1] == _REST
    if rest:
        segments.pop()
        end = rb"(?:/.*)?"
    pattern = b"".join(b"/" + _segment(segment) for segment in segments)
    names = _NAME.findall(text)
    if len(names) != len(set(names)):
        raise TemplateInvalid("a path template names each segment once")
    return Template(text=text, pattern=re.compile(pattern + end, flags), names=frozenset(names))


def _segment(segment: str) -> bytes:
    named = _NAME.fullmatch(segment)
    if named:
        return b"(?P<%b>%b)" % (named[1].encode(), _ONE)
    if segment == "*":
        return _ONE
    if set(segment) & set("*{}"):
        raise TemplateInvalid(f"{segment!r} is neither *, nor {{name}}, nor ** at the end, nor literal")
    literal = quote_segment(segment)
    if literal is None:
        raise TemplateInvalid(f"{segment!r} can never be a segment of a canonical path")
    return re.escape(literal)
