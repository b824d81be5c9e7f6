"""Deciding whether two near texts say the same. The cosine only proposes: `15 Oct` and `16 Oct` have 0.99.

Invariant: a fact is never dropped for another one. Where anything that carries meaning differs, both are kept.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from caisson.memory.domain.normal_forms import normal

PROPOSED_FROM: Final = 0.80
"""Cosine from which a memory is told as similar."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_SIGN = re.compile(r"[^\w\s.,;:!?\"'()“”‘’«»…–—]|_|[.:]+(?=[^\s.:\"')”’»])")
_NEGATION_WORDS = """
    not no never none nobody nothing neither nor without cannot can't won't don't doesn't didn't isn't aren't wasn't
    weren't shouldn't wouldn't couldn't hasn't haven't hadn't nicht kein keine nie pas jamais sin nunca не нет
"""
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_EMPTY_WORDS = frozenset(
    {"a", "an", "the", "is", "are", "am", "be", "that", "please", "also", "just", "really", "very"}
)
_MIN_STEM_CHARS = 4


@dataclass(frozen=True, slots=True)
class Same:
    """The new text adds nothing to the stored one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Different:
    """Both are kept; `because` says what differs."""

    because: str


def decide(new: str, stored: str) -> Same | Different:
    """Compare numbers and dates, negation, names and their order, signs, then every other word."""
    for name, read in _ASPECTS:
        if read(new) != read(stored):
            return Different(because=name)
    return Same()


def fingerprint(text: str) -> tuple[object, ...]:
    """Return what `decide` compares: two texts are the same where their fingerprints are."""
    return tuple(tuple(found) if isinstance(found := read(text), list) else found for _, read in _ASPECTS)


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def _negated(text: str) -> int:
    return sum(word in _NEGATIONS for word in _words(text))


def _names(text: str) -> list[str]:
    """Capitalised words in order, without the one that begins a sentence, which says nothing."""
    found = []
    for sentence in re.split(r"[.!?\n]+", text):
        words = [match.group() for match in _WORD.finditer(sentence)]
        found += [word for word in words[1:] if word[0].isupper()]
    return found


def _signs(text: str) -> list[str]:
    """Everything but words and sentence punctuation, in order: `C` is not `C#`, nor `-5` `5`, nor `a > b` `a < b`."""
    return _SIGN.findall(normal("NFC", text))


def _content(text: str) -> list[str]:
    return [_stem(word) for word in _words(text) if word not in _EMPTY_WORDS]


def _words(text: str) -> Iterable[str]:
    folded = normal("NFC", text).casefold().replace("’", "'")
    return (match.group() for match in _WORD.finditer(folded))


def _stem(word: str) -> str:
    """Fold a plural or a third person; a tense stays, for it can be the whole difference."""
    return word[:-1] if len(word) >= _MIN_STEM_CHARS and word.endswith("s") and not word.endswith("ss") else word


_ASPECTS = (("numbers", _numbers), ("negation", _negated), ("names", _names), ("signs", _signs), ("words", _content))
