"""Unicode normal forms of texts that nobody vouches for.

Invariant: takes time in proportion to the text. A run of combining marks is put in order by insertion, which is
quadratic, and the interpreter waits for it; so runs are divided first, as in the Stream-Safe Text Format of UAX #15.
"""

import unicodedata
from typing import Final, Literal

_MAX_MARKS: Final = 30
_DIVIDER: Final = "\u034f"
"""COMBINING GRAPHEME JOINER: of class 0, and invisible."""


def normal(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """Return a normal form of a text, whose runs of more than 30 combining marks are divided."""
    return text if text.isascii() else unicodedata.normalize(form, _divided(text))


def _divided(text: str) -> str:
    dividers, run = [], 0
    for at, char in enumerate(text):
        if not unicodedata.combining(char):
            run = 0
        elif run < _MAX_MARKS:
            run += 1
        else:
            dividers.append(at)
            run = 1
    if not dividers:
        return text
    pieces = (text[begin:end] for begin, end in zip((0, *dividers), (*dividers, len(text)), strict=True))
    return _DIVIDER.join(pieces)
