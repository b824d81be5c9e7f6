"""The API's answers about memory, typed like all others: unknown fields are kept, unknown states stay strings."""

from typing import Any

from caisson.client.models import Answer, Time


class Provenance(Answer):
    """Where a memory comes from."""

    kind: str = "person"
    run_id: str | None = None
    session_id: str | None = None
    source: str | None = None


class Memory(Answer):
    """One remembered thing; `q` says how useful it has proved, `trust` how far it is believed."""

    id: str
    external_id: str | None = None
    layer: str
    status: str
    text: str
    scopes: list[str] = []
    subject: str | None = None
    attribute: str | None = None
    importance: float = 0.5
    confidence: float = 1.0
    trust: float = 1.0
    q: float = 0.0
    visits: int = 0
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    provenance: Provenance = Provenance()
    sources: list[str] = []
    superseded_by: str | None = None
    version: int = 1
    created_at: Time | None = None
    updated_at: Time | None = None


class Remembered(Answer):
    """What became of one thing to remember: created, duplicate_of, superseded, or rejected with a reason."""

    status: str
    id: str | None = None
    supersedes: list[str] = []
    similar_to: str | None = None
    reason: str | None = None


class RememberedAll(Answer):
    """One answer for each, in order."""

    results: list[Remembered]


class HistoryEntry(Answer):
    """One version of a memory or of the chain of facts it belongs to."""

    memory_id: str
    version: int
    change: str
    text: str | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    at: Time | None = None


class History(Answer):
    """Oldest first."""

    entries: list[HistoryEntry]


class Receipt(Answer):
    """Everything that a deletion touched; while it is not `complete`, `resume` goes on with it."""

    id: str
    deleted: list[str] = []
    rebuilt: list[str] = []
    vectors: int = 0
    cache_epochs: int = 0
    tombstones: int = 0
    complete: bool = True
    resume: str | None = None
    count: int = 0


class Diagnostics(Answer):
    """What happened in a recall."""

    backend: str
    legs: list[str] = []
    degraded: list[str] = []
    gate: float | None = None
    best_cosine: float | None = None
    best_lexical: float | None = None
    sparse_terms: int = 0
    found: int = 0
    gated: int = 0
    expired_in_index: int = 0
    mismatched: int = 0
    dropped_for_budget: int = 0
    tokens: int = 0
    reason: str | None = None


class Hit(Answer):
    """One recalled memory; `score` in [0, 1] orders them."""

    memory: Memory
    score: float
    cosine: float | None = None
    lexical: float | None = None
    tokens: int = 0


class Recalled(Answer):
    """The answer of a recall; `retrieval_id` is what feedback refers to."""

    retrieval_id: str
    hits: list[Hit]
    diagnostics: Diagnostics


class Context(Answer):
    """A recall as text for a model: each memory quoted as data."""

    retrieval_id: str
    text: str
    ids: list[str] = []
    diagnostics: Diagnostics


class FeedbackTaken(Answer):
    """The memories that learned."""

    updated: list[str] = []


class ConsolidationPlan(Answer):
    """Groups of episodes, and what each becomes."""

    groups: list[dict[str, Any]] = []
    created: list[str] = []
    applied: bool = False


class Distilled(Answer):
    """The selection, and what each stage did."""

    job_id: str
    selected: list[str] = []
    stages: list[dict[str, Any]] = []
    complete: bool = True


class MemoryUsage(Answer):
    """Rows and bytes of a user and of its tenant, against their quotas."""

    user_rows: int
    user_rows_limit: int
    user_bytes: int
    user_bytes_limit: int
    tenant_rows: int
    tenant_rows_limit: int
    tenant_bytes: int
    tenant_bytes_limit: int


class Reconciled(Answer):
    """What a comparison of store and index found and mended."""

    checked: int
    missing: int
    orphaned: int
    stale: int
