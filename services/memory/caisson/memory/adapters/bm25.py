"""The lexical leg's vectors: our terms through the engine's own BM25, whose token ids the server shares.

The engine's tokenizers are not used. Its multilingual one drops every number (8080, 10.0.0.1, 15 Oct) and cuts
a CJK word differently alone and in a sentence; its word one keeps a CJK sentence as a single token.
"""

from dataclasses import dataclass

import qdrant_edge as edge

from caisson.memory.domain.terms import query_terms, terms

_TYPICAL_TERMS = 32.0


@dataclass(frozen=True, slots=True)
class Sparse:
    """Token ids and their weights; none for a text without terms."""

    indices: list[int]
    values: list[float]


class Bm25:
    """Weights of terms in stored texts and in queries; English stems and stopwords, any script."""

    def __init__(self) -> None:
        self._model = edge.Bm25(
            edge.Bm25Config(tokenizer=edge.TokenizerType.Whitespace, language="english", avg_len=_TYPICAL_TERMS)
        )

    def document(self, text: str) -> Sparse:
        """Return a stored text's terms, weighted for how long it is."""
        return _sparse(self._model.embed_document(" ".join(terms(text))))

    def query(self, text: str) -> Sparse:
        """Return a query's terms, each once."""
        return _sparse(self._model.embed_query(" ".join(query_terms(text))))


def _sparse(vector: edge.SparseVector) -> Sparse:
    return Sparse(vector.indices, vector.values)
