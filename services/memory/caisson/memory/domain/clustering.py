"""Grouping texts by meaning: deterministic, one pass, no text in two groups."""

from collections.abc import Sequence

import numpy as np

from caisson.memory.domain.indexing import Vector


def cluster(vectors: Sequence[Vector], *, threshold: float, largest: int) -> list[list[int]]:
    """Put each unit vector into the nearest group whose centre is at least `threshold` near, or into a new one.

    Returns:
        Positions by group, in the order in which the groups were opened; no group has more than `largest`.
    """
    groups: list[list[int]] = []
    if not vectors:
        return groups
    matrix = np.asarray(vectors, dtype=np.float32)
    sums = np.zeros_like(matrix)
    for position, vector in enumerate(matrix):
        best = _nearest(vector, sums[: len(groups)], groups, threshold=threshold, largest=largest)
        if best is None:
            best = len(groups)
            groups.append([])
        groups[best].append(position)
        sums[best] += vector
    return groups


def _nearest(
    vector: "np.ndarray[tuple[int], np.dtype[np.float32]]",
    sums: "np.ndarray[tuple[int, int], np.dtype[np.float32]]",
    groups: list[list[int]],
    *,
    threshold: float,
    largest: int,
) -> int | None:
    if not groups:
        return None
    cosines = sums @ vector / np.maximum(np.linalg.norm(sums, axis=1), 1e-9)
    cosines[[len(group) >= largest for group in groups]] = -1.0
    best = int(np.argmax(cosines))
    return best if cosines[best] >= threshold else None
