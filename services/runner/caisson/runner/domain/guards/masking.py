"""Snippets of a command for a security event: short, and without anything that looks like a credential.

Invariant: masking keeps every position, so a cut through a masked part shows nothing of it.
"""

import re
from typing import Final

MAX_SNIPPET_CHARS: Final = 200
_MARGIN: Final = 8192
_MASK: Final = "*"

_CREDENTIALS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"-----BEGIN [A-Z ]{0,30}KEY-----[\s\S]{0,8000}?(?:-----END|\Z)",
        r"\b(?:bearer|basic|token|digest)[ \t]{1,8}([^\s\"'$<>|;]{6,4096})",
        r"(?:authorization|cookie|x-[a-z-]{0,40}(?:token|key|secret))[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
        r"([^\"'\s$][^\"'\n$]{0,4095})",
        r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
        r"[\"']?[ \t]{0,8}[:=]{1,2}[ \t]{0,8}[\"']?([^\s\"'&$,;}]{1,4096})",
        r"(?:^|\s)(?:-u|--user|--password|--proxy-user)[= ]{0,2}[\"']?([^\s\"'$]{1,512})",
        r"://([^\s/@\"'$:]{1,256}(?::[^\s/@\"'$]{0,512})?)@",
        r"\b((?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,512}|gh[pousr]_[A-Za-z0-9]{8,512}|github_pat_\w{8,512}|glpat-[\w-]{8,512})",
        r"\b(xox[a-z]-[\w-]{8,512}|AKIA[0-9A-Z]{12,64}|ASIA[0-9A-Z]{12,64}|AIza[\w-]{20,128}|csn_[\w-]{8,512})",
        r"\b(eyJ[\w-]{8,4096}(?:\.[\w-]{1,4096}){0,2})",
        r"(?<![\w/+-])((?=[\w+/-]{0,128}\d)(?=[\w+/-]{0,128}[A-Za-z])[\w+-]{32,4096}={0,2})(?![\w/+-])",
    )
)


def snippet(text: str, start: int, end: int) -> str:
    """Return at most 200 characters of `text` around the UTF-8 byte range, on one line, credentials masked."""
    raw = text.encode(errors="replace")
    before = raw[max(0, start - _MARGIN) : start].decode(errors="ignore")
    after = raw[start : max(end, start) + _MARGIN].decode(errors="ignore")
    masked = mask(before + after)
    length = min(max(1, len(raw[start:end].decode(errors="ignore"))), MAX_SNIPPET_CHARS)
    spare = MAX_SNIPPET_CHARS - length
    lead = min(len(before), max(spare // 2, spare - (len(after) - length)))
    shown = masked[len(before) - lead :][:MAX_SNIPPET_CHARS]
    return " ".join(shown.split())


def mask(text: str) -> str:
    """Replace every character of what looks like a credential."""
    for pattern in _CREDENTIALS:
        text = pattern.sub(_starred, text)
    return text


def _starred(found: "re.Match[str]") -> str:
    group = 1 if found.re.groups else 0
    start, end = found.start(group) - found.start(), found.end(group) - found.start()
    whole = found[0]
    return whole[:start] + _MASK * (end - start) + whole[end:]
