"""What fits into a token budget. Invariant: whole entries only, Σ ≤ budget, at least the best one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

EntryT = TypeVar("EntryT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled(Generic[EntryT]):
    """The entries that fit with the tokens of each, in their order, and how many did not."""

    kept: tuple[tuple[EntryT, int], ...]
    dropped: int

    @property
    def tokens(self) -> int:
        """The sum of the kept entries' tokens."""
        return sum(tokens for _, tokens in self.kept)


def fill(entries: Iterable[tuple[EntryT, int]], *, budget: int) -> Filled[EntryT]:
    """Take entries, best first, as long as they fit; a smaller one may follow one that was too large."""
    kept: list[tuple[EntryT, int]] = []
    left, dropped = budget, 0
    for entry, tokens in entries:
        if tokens <= left or not kept:
            kept.append((entry, tokens))
            left = max(left - tokens, 0)
        else:
            dropped += 1
    return Filled(kept=tuple(kept), dropped=dropped)
