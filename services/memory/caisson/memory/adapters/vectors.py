"""The check of vectors before an engine sees them: engines accept a NaN in silence and then rank by it."""

from collections.abc import Sequence

import numpy as np

from caisson.common.errors import InvalidInput
from caisson.memory.domain.indexing import IndexQuery, Vector

_SHORTEST = 1e-6


def unit(vectors: Sequence[Vector], dimensions: int) -> list[list[float]]:
    """Return the vectors at length 1.

    Raises:
        InvalidInput: when one has another number of dimensions, is not finite, or has no direction.
    """
    for vector in vectors:
        if len(vector) != dimensions:
            raise InvalidInput(f"the vector has {len(vector)} dimensions, the index {dimensions}", field="dense")
    if not vectors:
        return []
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise InvalidInput("the vector is not finite", field="dense")
    if (lengths < _SHORTEST).any():
        raise InvalidInput("the vector has no direction: its length is 0", field="dense")
    scaled: list[list[float]] = (rows / lengths).tolist()
    return scaled


def query_vector(query: IndexQuery, dimensions: int) -> list[float] | None:
    """Return a query's vector at length 1, None without one.

    Raises:
        InvalidInput: when it is not sound, or the query has neither vector nor text.
    """
    if query.dense is None and query.text is None:
        raise InvalidInput("a search needs a vector or a text", field="query")
    return None if query.dense is None else unit([query.dense], dimensions)[0]
