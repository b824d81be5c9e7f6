"""What is asked of a recall and what it answers. Invariant: an answer says everything that happened to it."""

from dataclasses import dataclass
from typing import Literal

from caisson.memory.domain.memories import Memory
from caisson.memory.domain.principals import HardFilter

Kind = Literal["search", "context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A recall: the query, what its principal may see at all, and how much it wants."""

    query: str
    filter_: HardFilter
    k: int
    token_budget: int
    session_id: str | None = None
    may_degrade: bool = True
    kind: Kind = "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory that a leg found and the store confirmed.

    `cosine` in [-1, 1], None where the dense leg did not return it; `lexical` in [0, 1], the share of the query's
    terms that the text holds, None where no lexical leg returned it; `similarity` in [0, 1] is their blend.
    `is_exact`: it is the very text that was asked for.
    """

    memory: Memory
    cosine: float | None
    lexical: float | None
    similarity: float
    is_exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory that is told: `score` in [0, 1] orders them, `tokens` is what it costs."""

    found: Found
    score: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What happened. `found` counts what the principal may see; `mismatched` what the index returned beyond that;
    `cached` says that the candidates are those of an earlier search, confirmed anew.
    """

    backend: str
    legs: tuple[str, ...]
    degraded: tuple[str, ...]
    gate: float | None
    best_cosine: float | None
    best_lexical: float | None
    sparse_terms: int
    found: int
    gated: int
    expired_in_index: int
    mismatched: int
    dropped_for_budget: int
    tokens: int
    reason: str | None
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The memories that are told, best first, and the record that feedback refers to."""

    retrieval_id: str
    told: tuple[Told, ...]
    report: Report
