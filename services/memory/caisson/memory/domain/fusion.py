"""Reciprocal rank fusion of the legs of a search. Invariant: a fused score orders memories, it tells no likeness.

Source: Cormack et al., SIGIR 2009; weights and constant as Qdrant has them, 1 / ((rank + 1) / weight + k - 1), ranks
from zero. Legs are fused here and not by an engine, because an engine drops the legs' own scores, which a gate needs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caisson.memory.domain.indexing import Candidate, Candidates

RANK_CONSTANT = 2

_WIDENING = 4
_MOST_CHUNKS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one leg found: the best score of each memory, best first, and the leg's weight in the fusion."""

    best: Mapping[str, float]
    weight: float


def best_of_each(chunks: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Collapse (memory id, score) of chunks to the best score of each memory, best first, equal ones by id.

    An engine returns equal scores in the order in which it happens to hold them.
    """
    best: dict[str, float] = {}
    for memory_id, score in chunks:
        best[memory_id] = max(score, best.get(memory_id, score))
    return dict(sorted(best.items(), key=lambda found: (-found[1], found[0])))


def wider(*, limit: int, asked: int, chunks: int, memories: int) -> int | None:
    """Return how many chunks to ask for next when chunks of few memories filled an answer, None when it is enough."""
    if memories >= limit or chunks < asked or asked >= _MOST_CHUNKS:
        return None
    return min(asked * _WIDENING, _MOST_CHUNKS)


def fuse(dense: Leg | None, lexical: Leg | None, *, sparse_terms: int) -> Candidates:
    """Fuse the legs that ran, best first; ties go to the better cosine, then to the better lexical score."""
    fused: dict[str, float] = {}
    ran = {name: leg for name, leg in (("dense", dense), ("sparse", lexical)) if leg is not None}
    for leg in ran.values():
        for rank, memory_id in enumerate(leg.best):
            fused[memory_id] = fused.get(memory_id, 0.0) + _share(rank, leg.weight)
    found = [
        Candidate(memory_id=id_, cosine=_cosine(dense, id_), lexical=_own(lexical, id_), fused=score)
        for id_, score in fused.items()
    ]
    return Candidates(found=sorted(found, key=_order), legs=tuple(ran), sparse_terms=sparse_terms)


def joined(*searches: Candidates) -> Candidates:
    """Join searches of one leg each to what one search of all legs finds: the shares of ranks add up."""
    found: dict[str, Candidate] = {}
    for one in (candidate for searched in searches for candidate in searched.found):
        known = found.get(one.memory_id)
        found[one.memory_id] = one if known is None else _both(known, one)
    return Candidates(
        found=sorted(found.values(), key=_order),
        legs=tuple(sorted({leg for searched in searches for leg in searched.legs})),
        sparse_terms=max(searched.sparse_terms for searched in searches),
    )


def _both(one: Candidate, other: Candidate) -> Candidate:
    return Candidate(
        memory_id=one.memory_id,
        cosine=other.cosine if one.cosine is None else one.cosine,
        lexical=other.lexical if one.lexical is None else one.lexical,
        fused=one.fused + other.fused,
    )


def _share(rank: int, weight: float) -> float:
    return 1 / ((rank + 1) / weight + RANK_CONSTANT - 1) if weight > 0 else 0.0


def _own(leg: Leg | None, memory_id: str) -> float | None:
    return leg.best.get(memory_id) if leg else None


def _cosine(leg: Leg | None, memory_id: str) -> float | None:
    own = _own(leg, memory_id)
    return None if own is None else max(-1.0, min(1.0, own))


def _order(candidate: Candidate) -> tuple[float, float, float, str]:
    cosine = -2.0 if candidate.cosine is None else candidate.cosine
    return (-candidate.fused, -cosine, -(candidate.lexical or 0.0), candidate.memory_id)
