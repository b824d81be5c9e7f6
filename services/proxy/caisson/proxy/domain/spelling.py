"""When two names are the same name to some server behind the proxy.

Invariant: `fold` maps every spelling that a known framework takes for the same key to the same text, so a rule about
one spelling holds for all. It may map unrelated names together; it never keeps two spellings apart.
"""

import re
from unicodedata import normalize
from urllib.parse import unquote_to_bytes

_MAX_ENCODINGS = 4
_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_BYTES = 128
_END_OF_NAME = re.compile(r"[\[\0]")
_IIS_ESCAPE = re.compile(rb"%u([0-9a-fA-F]{4})")


def fold(name: str) -> str:
    """Return the letters and digits of a name, compatibility-normalised, without case."""
    lowered = name.lower() if name.isascii() else normalize("NFKC", name).casefold()
    return lowered if lowered.isalnum() else "".join(filter(str.isalnum, lowered))


def fold_query_key(raw: bytes) -> str:
    """Fold a key as it stands in a query: decoded as often as it was encoded, without `[…]` (PHP, Rails, qs)."""
    decoded = raw
    for _ in range(_MAX_ENCODINGS):
        before = decoded
        decoded = unquote_to_bytes(_IIS_ESCAPE.sub(_from_iis_escape, before))
        if decoded == before:
            break
    return fold(_END_OF_NAME.split(decoded.decode("utf-8", "replace"), maxsplit=1)[0])


def fold_header(raw: bytes) -> bytes:
    """Fold a header name as CGI does: any punctuation is the same as a dash, case does not count."""
    return raw.lower().translate(_PUNCTUATION_TO_DASH)


def _from_iis_escape(match: re.Match[bytes]) -> bytes:
    return chr(int(match[1], 16)).encode("utf-8", "replace")


_PUNCTUATION_TO_DASH = bytes(byte if chr(byte).isascii() and chr(byte).isalnum() else ord("-") for byte in range(256))


class Spellings(dict[bytes, bool]):
    """Whether a raw query key is a spelling of one name; remembers what it has seen, within bounds."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._folded = fold(name)

    def __missing__(self, raw: bytes) -> bool:
        same = fold_query_key(raw) == self._folded
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        if len(raw) <= _MAX_REMEMBERED_BYTES:
            self[raw] = same
        return same
