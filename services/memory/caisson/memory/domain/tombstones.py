"""What a forgotten text is known by, beside its hash: with other punctuation it is the same forgotten text.

Invariant: only what ends, opens or closes a sentence or a quotation is folded, at the edge of a word. A sign that can
be the whole difference stays: `C#` and `C`, `-5` and `5`, `1,5` and `15`, `5"` and `5'`, `./a` and `/a`.
"""

from typing import Final

from caisson.common.ids import TenantId
from caisson.memory.domain.hashing import content_hash, normalise

_ENDING: Final = ".,;:!?…。、，；：！？"
_OPENING: Final = "\"'“„‘«‹(¿¡「『（"
_CLOSING: Final = "\"'”“’»›)」』）"
_PARENT_FOLDER: Final = ".."


def bare(text: str) -> str:
    """Return a text without case and without punctuation at the edges of words; where nothing else is in it, all."""
    folded = normalise(text)
    return " ".join(word for word in map(_bare_word, folded.split(" ")) if word) or folded


def bare_hash(tenant: TenantId, text: str) -> bytes:
    """Return SHA-256 of tenant and bare text."""
    return content_hash(tenant, bare(text))


def _bare_word(word: str) -> str:
    """Beside a digit a bracket or a quote stays: it may be a sign of loss, of feet or of inches."""
    if not word.strip(_ENDING):
        return word if word == _PARENT_FOLDER else ""
    if not word.strip(_ENDING + _OPENING + _CLOSING):
        return word
    opened = word.lstrip(_OPENING)
    if opened[0].isdigit():
        opened = word
    core = opened.rstrip(_ENDING + _CLOSING)
    if core[-1:].isdigit():
        tail = opened[len(core) :]
        core += tail[: len(tail) - len(tail.lstrip(_CLOSING))]
    return core
