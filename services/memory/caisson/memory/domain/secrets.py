"""Telling a secret from a text: the shapes of known keys, what is called a secret, and strings too random for words.

Invariant: the finding names the kind of secret, never any part of it.
"""

import math
import re
from collections import Counter
from itertools import pairwise

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")),
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("a Google API key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    ("a Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("an API key", re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")),
    ("an npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}")),
    ("a PyPI token", re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}")),
    ("a SendGrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}")),
    ("a Caisson key", re.compile(r"\bcsn_[A-Za-z0-9_]{20,}")),
    ("a JSON Web Token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,2000}+\.[A-Za-z0-9_-]{8,4000}+\.")),
    ("a password in a URL", re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,200}:[^\s/@]{3,200}@", re.IGNORECASE)),
    (
        "an Authorization header",
        re.compile(r"\bauthorization\s*[:=]\s*(?:bearer|basic|token)\s+\S{8,}", re.IGNORECASE),
    ),
)
_CALLED_SECRET = re.compile(
    r"""(?:pass(?:word|wd|phrase)|secret|(?:api|access|private)[_ -]?key|(?:auth|access)[_ -]?token)
        s? ["']? \s* (?:=|:|\bis\b) \s* ["']? (?P<value>[^\s"',;]{6,})""",
    re.IGNORECASE | re.VERBOSE,
)
_TOKEN = re.compile(r"[A-Za-z0-9+/_=.-]{24,}")
_BITS_PER_CHAR = 4.2
_MIN_RANDOM_CHARS = 32
_MIN_CHANGES = 0.35


def find_secret(text: str) -> str | None:
    """Return what kind of secret a text holds, or None."""
    for kind, shape in _SHAPES:
        if shape.search(text):
            return kind
    if any(_is_secret_value(match["value"]) for match in _CALLED_SECRET.finditer(text)):
        return "something called a password, key or token"
    if any(_is_random(match.group()) for match in _TOKEN.finditer(text)):
        return "a string too random to be words"
    return None


def _is_secret_value(value: str) -> bool:
    """A value that is no plain word: `hunter2!` is one, `stored` and `required` are not."""
    return not value.strip(".!?)").isalpha() and not value.startswith(("<", "$", "{", "*"))


def _is_random(token: str) -> bool:
    """Whether a part between separators is long and drawn at random; paths and ids made of words are not."""
    parts = re.split(r"[/.=-]", token)
    return any(len(part) >= _MIN_RANDOM_CHARS and _looks_drawn(part) for part in parts)


def _looks_drawn(token: str) -> bool:
    classes = [_class_of(char) for char in token]
    if not {"upper", "lower", "digit"} <= set(classes):
        return False
    changes = sum(a != b for a, b in pairwise(classes)) / (len(classes) - 1)
    return changes >= _MIN_CHANGES and _entropy(token) >= _BITS_PER_CHAR


def _class_of(char: str) -> str:
    if char.isupper():
        return "upper"
    if char.islower():
        return "lower"
    return "digit" if char.isdigit() else "other"


def _entropy(token: str) -> float:
    """Shannon entropy in bits per character."""
    total = len(token)
    return -sum(count / total * math.log2(count / total) for count in Counter(token).values())
