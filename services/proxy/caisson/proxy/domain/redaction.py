"""The credential in an answer, replaced while streaming.

Invariant: a secret never passes in clear, unbroken base64 (any alignment), hex, or the percent-encoding, HTML and
JSON escapes that common serialisers write, however the stream is cut; only a tail that may be the beginning of one of
these is held back. Lengths do not change. This guards against accidents, not against an upstream that wants to tell.
"""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

_MASK = b"*"
_ESCAPE = re.compile(rb"%[0-9A-F]{2}")
_PLAIN = "-._~"
_HTML = "<>&'+=\""
_UNICODE = re.compile(r"\\u([0-9a-f]{4})")
_SHORTEST_ENCODED = 8
"""Shorter stretches of base64 or hex are met by chance."""
_SEED = 4
_SMALL_BYTES = 1024
"""Up to here one search for any form is faster than one for each."""
_COMMON = b"QXZJKVWYUOHLRBMPGFNDSACEIT9876543210zqxjkvwybpgfumcdlhrsnioate&%=+_;</.,-:"
"""Bytes from rare to common in heads, JSON and HTML; any other (-1) counts as rare."""
_GRAM = 3
"""A beginning of this length or more ends in a stretch of this length that a form has inside."""


class Secret:
    """A value to keep back, in every form in which an upstream may echo it."""

    __slots__ = ("_anchors", "_beginnings", "_forms", "_inner")

    def __init__(self, value: str) -> None:
        forms = {form for form in _forms(value) if form}
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._anchors = re.compile(
            b"|".join(re.escape(anchor) for anchor in sorted({_anchor(form) for form in forms}))
        )
        self._inner = frozenset(form[at : at + _GRAM] for form in forms for at in range(len(form) - _GRAM))
        self._beginnings = frozenset(form[:length] for form in forms for length in range(1, min(_GRAM, len(form))))

    def mask(self, data: bytes) -> bytes:
        """Replace every whole form in `data`."""
        if len(data) <= _SMALL_BYTES and self._anchors.search(data) is None:
            return data
        for form in self._forms:
            if form in data:
                data = data.replace(form, _MASK * len(form))
        return data

    def tail(self, data: bytes) -> int:
        """Return where the longest end of `data` begins that may be the beginning of a form (its length if none)."""
        beginnings = self._beginnings
        if data[-_GRAM:] not in self._inner and data[-1:] not in beginnings and data[-2:] not in beginnings:
            return len(data)
        return min(_overlap(data, form) for form in self._forms)


class Redactor:
    """One answer's stream: feed it pieces, then finish."""

    __slots__ = ("_secret", "echoed", "held")

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self.held = b""
        self.echoed = False

    def feed(self, data: bytes) -> bytes:
        """Return what may pass now."""
        whole = self.held + data if self.held else data
        masked = self._secret.mask(whole)
        if masked is not whole:
            self.echoed = True
        start = self._secret.tail(masked)
        if start == len(masked):
            self.held = b""
            return masked
        self.held = masked[start:]
        return masked[:start]

    def finish(self) -> bytes:
        """Return what was held back: the stream ended before it became a secret."""
        held, self.held = self.held, b""
        return held


def _anchor(form: bytes) -> bytes:
    """Return the stretch of a form that begins with the byte which ordinary text has least of."""
    starts = range(max(1, len(form) - _SEED + 1))
    start = min(starts, key=lambda at: _COMMON.find(form[at]))
    return form[start : start + _SEED]


def _overlap(data: bytes, form: bytes) -> int:
    seed = form[:_SEED]
    start = data.find(seed, max(0, len(data) - len(form) + 1))
    while start != -1:
        if form.startswith(data[start:]):
            return start
        start = data.find(seed, start + 1)
    for length in range(min(_SEED, len(form)) - 1, 0, -1):
        if data.endswith(form[:length]):
            return len(data) - length
    return len(data)


def _forms(value: str) -> set[bytes]:
    forms = _written(value)
    for part in value.split():
        if part != value and len(part) >= _SHORTEST_ENCODED:
            forms |= _written(part)
    return forms


def _written(value: str) -> set[bytes]:
    raw = value.encode()
    percent = quote(value, safe="").encode()
    escaped = json.dumps(value)[1:-1]
    unicode = "".join(char if char.isalnum() or char in _PLAIN else f"\\u{ord(char):04x}" for char in value)
    some = "".join(f"\\u{ord(char):04x}" if char in _HTML else char for char in escaped)
    forms = {raw, percent, _ESCAPE.sub(lambda match: match[0].lower(), percent), escaped.encode()}
    forms |= {escaped.replace("/", "\\/").encode(), html.escape(value).encode(), quote_plus(value).encode()}
    forms |= {html.escape(value).replace("&#x27;", "&#39;").encode()}
    forms |= {text.encode() for form in (unicode, some) for text in (form, _UNICODE.sub(_upper_digits, form))}
    if len(raw) >= _SHORTEST_ENCODED:
        forms |= {raw.hex().encode(), raw.hex().upper().encode()}
    for shift in range(3):
        standard = _inner_base64(raw, shift)
        if len(standard) >= _SHORTEST_ENCODED:
            forms |= {standard, standard.translate(bytes.maketrans(b"+/", b"-_"))}
    return forms


def _upper_digits(match: re.Match[str]) -> str:
    return "\\u" + match[1].upper()


def _inner_base64(raw: bytes, shift: int) -> bytes:
    """Return the base64 characters that depend on nothing before (`shift` bytes into a group) or after the value."""
    encoded = base64.b64encode(b"\0" * shift + raw)
    first = -(-shift * 8 // 6)
    return encoded[first : (shift + len(raw)) * 8 // 6]
