"""What is asked and answered about recalls over the bus. Invariant: an answer says what became of all it found."""

from typing import Literal

from pydantic import Field

from caisson.common.memories import Called, LayerName, MemoryView
from caisson.common.messages import Id, Message, Text
from caisson.common.moments import Moment


class Query(Message):
    """What a recall looks for: at most `k` whole memories within `token_budget`."""

    query: Text
    k: int = Field(default=8, ge=1, le=100)
    token_budget: int = Field(default=2_000, ge=1, le=100_000)
    layers: list[LayerName] = []
    as_of: Moment | None = None
    session_id: Id | None = None
    on_degraded: Literal["serve", "fail"] = "serve"


class Search(Query, Called):
    """A recall."""


class Hit(Message):
    """One recalled memory. `score` in [0, 1], higher is better."""

    memory: MemoryView
    score: float
    cosine: float | None
    lexical: float | None
    tokens: int


class Diagnostics(Message):
    """What happened in a recall."""

    backend: str
    legs: list[str]
    degraded: list[str]
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


class Recalled(Message):
    """The answer of a recall."""

    retrieval_id: str
    hits: list[Hit]
    diagnostics: Diagnostics


class Context(Message):
    """A recall as text for a model: each memory quoted as data, escaped, with provenance."""

    retrieval_id: str
    text: str
    ids: list[str]
    diagnostics: Diagnostics


class Reward(Message):
    """What an injected recall was worth, from -1 to 1."""

    retrieval_id: Text
    reward: float = Field(ge=-1, le=1)


class Feedback(Reward, Called):
    """A reward, from whose recall it was."""


class FeedbackTaken(Message):
    """The memories whose utility moved."""

    updated: list[str]
