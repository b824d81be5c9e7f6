"""Cutting a text into windows. Invariant: put together they are the text; none but a lone unit is over budget."""

import re
from collections.abc import Sequence

MAX_UNIT_CHARS = 64

_SENTENCE_MARKS = "。！？｡"
_UNIT = re.compile(
    rf"(?:[^\s{_SENTENCE_MARKS}]{{1,{MAX_UNIT_CHARS}}}[{_SENTENCE_MARKS}]*|[{_SENTENCE_MARKS}]+)\s*|\s+"
)
_SENTENCE_END = re.compile(rf"""(?:[.!?…{_SENTENCE_MARKS}]['"’”»)\]]*\s*|\n\s*)\Z""")
_SPACE_END = re.compile(r"\s\Z")


def has_content(text: str) -> bool:
    """Tell whether anything of a text can be seen."""
    return any(char.isprintable() and not char.isspace() for char in text)


def units(text: str) -> list[str]:
    """Cut a text into words with the space behind them; a word too long for a tokenizer is cut into several."""
    return _UNIT.findall(text)


def pack(pieces: Sequence[str], costs: Sequence[int], budget: int) -> list[str]:
    """Join units into as few windows as end at a sentence, or else at a word, in their second half."""
    windows: list[str] = []
    start = 0
    while start < len(pieces):
        end = _reach(costs, start, budget)
        if end < len(pieces):
            end = _boundary(pieces, start, end)
        windows.append("".join(pieces[start:end]))
        start = end
    return windows


def _reach(costs: Sequence[int], start: int, budget: int) -> int:
    end, spent = start + 1, costs[start]
    while end < len(costs) and spent + costs[end] <= budget:
        spent += costs[end]
        end += 1
    return end


def _boundary(pieces: Sequence[str], start: int, end: int) -> int:
    half = start + (end - start) // 2
    for ends in (_SENTENCE_END, _SPACE_END):
        for cut in range(end, half, -1):
            if ends.search(pieces[cut - 1]):
                return cut
    return end
