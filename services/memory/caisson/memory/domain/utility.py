"""How useful memories have proved, and what that may change about their order.

Invariant: utility reorders what was found and passed; it adds nothing, and no utility outranks an exact match.
"""

from caisson.memory.domain.recalls import Found

LEARNING_RATE = 0.1
DENSE_WEIGHT = 3.0
SPARSE_WEIGHT = 1.0
SWAY = 0.15
"""The most that utility changes a similarity by, as a share of it."""

_LIMIT = 1.0
_MOST_BUT_EXACT = 0.995


def similarity(*, cosine: float | None, lexical: float | None, has_terms: bool = True) -> float:
    """Blend the legs' scores, weighted as the legs are.

    A leg that could not search has no weight: without a cosine the lexical score stands alone, and the cosine where
    the query has no terms that the lexical leg knows.
    """
    if cosine is None:
        return lexical or 0.0
    if not has_terms:
        return min(max(cosine, 0.0), 1.0)
    whole = DENSE_WEIGHT * max(cosine, 0.0) + SPARSE_WEIGHT * (lexical or 0.0)
    return min(whole / (DENSE_WEIGHT + SPARSE_WEIGHT), 1.0)


def score(found: Found) -> float:
    """Return similarity, swayed by utility, in [0, 1]; the very text that was asked for has 1, and nothing else."""
    if found.is_exact:
        return 1.0
    return min(found.similarity * (1 + SWAY * found.memory.q), _MOST_BUT_EXACT)


def rank(found: list[Found]) -> list[tuple[float, Found]]:
    """Order by score, best first; ties by similarity, then by utility, then by the newer memory."""
    return sorted(((score(item), item) for item in found), key=lambda pair: _order(*pair))


def _order(value: float, item: Found) -> tuple[float, ...]:
    return -value, -item.similarity, -item.memory.q, -item.memory.created_at.timestamp()


def learn(q: float, *, reward: float, shared_by: int) -> float:
    """Return Q after one reward: Q ← clip(Q + α (r - Q)), with α split over the memories that shared the credit.

    The step is split and not the reward, so that a memory that always helps tends to 1 in any company.
    """
    step = LEARNING_RATE / shared_by
    return min(max(q + step * (reward - q), -_LIMIT), _LIMIT)
