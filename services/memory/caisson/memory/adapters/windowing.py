"""Token counts and windows by a model's own tokenizer. Invariant: a window that is cut here fits the model."""

import numpy as np
from tokenizers import Tokenizer

from caisson.common.errors import InvalidInput
from caisson.memory.domain.chunking import has_content, pack, units

_ENCODED_UNITS = 512


class Windows:
    """Counts and cuts; each distinct word of a text is tokenized once, and none is remembered.

    `window` tokens are what the model takes at once, `special` of them its own.
    """

    def __init__(self, tokenizer: Tokenizer, *, window: int, special: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._window = window
        self._special = special

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        pieces = units(text)
        if len(pieces) > _ENCODED_UNITS:
            return sum(self._costs(pieces))
        words = " ".join(word for word in map(str.strip, pieces) if word)
        return len(self._tokenizer.encode(words, add_special_tokens=False).ids)

    def chunks(self, text: str) -> list[str]:
        """Cut a text into pieces of at most one window, losing nothing."""
        pieces = units(text)
        return pack(pieces, self._costs(pieces), self._window - self._special)

    def encode(self, text: str) -> list[int]:
        """Return a text's token ids, of the very units that are counted, with the model's own around them.

        Raises:
            InvalidInput: when it has no token, or more than a window.
        """
        words = [word for word in map(str.strip, units(text)) if word]
        ids: list[int] = self._tokenizer.encode(" ".join(words), add_special_tokens=self._special > 0).ids
        if len(ids) <= self._special or not has_content(text):
            raise InvalidInput("a text without content has no vector", field="text")
        if len(ids) > self._window:
            raise InvalidInput(f"the text has {len(ids)} tokens, a window {self._window}", field="text")
        return ids

    def _costs(self, pieces: list[str]) -> list[int]:
        words = [piece.strip() for piece in pieces]
        distinct = [word for word in dict.fromkeys(words) if word]
        costs = {"": 0}
        for at in range(0, len(distinct), _ENCODED_UNITS):
            some = distinct[at : at + _ENCODED_UNITS]
            costs.update(zip(some, self._counted(some), strict=True))
        return [costs[word] for word in words]

    def _counted(self, words: list[str]) -> list[int]:
        """Return the tokens of each word, by where they begin: at the word, or at the space before it."""
        ends = np.cumsum([len(word) + 1 for word in words]) - 1
        offsets = self._tokenizer.encode(" ".join(words), add_special_tokens=False).offsets
        begins = np.array([begin for begin, _ in offsets], dtype=np.int64)
        counts: list[int] = np.bincount(np.searchsorted(ends, begins, side="right"), minlength=len(words)).tolist()
        return counts
