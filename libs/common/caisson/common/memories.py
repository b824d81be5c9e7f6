"""The messages between the gateway (or a run) and the memory service (`caisson.rpc.memory.*`)."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, PlainSerializer

from caisson.common.messages import Id, Message, Text

MAX_SOURCE_CHARS = 1_024
MAX_OUTCOME_CHARS = 4_096
MAX_CONFIRMATIONS = 1_000_000

_BEGINS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:")


def _no_number(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _BEGINS_LIKE_A_TIME.match(value)):
        return value
    raise ValueError("must be a time in RFC 3339")


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number), Field(strict=False)]
"""A time with its offset, as text where it comes from JSON; never a number of seconds."""


def _milliseconds(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Shown = Annotated[datetime, PlainSerializer(_milliseconds, return_type=str, when_used="json")]
"""A time as readers see it: in UTC, with milliseconds."""


class Caller(Message):
    """The principal of a request, made by the gateway from key and headers: nothing in a body can widen it."""

    tenant_id: str
    user_id: str
    scopes: list[str]


LayerName = Literal["session", "episodic", "semantic", "procedural"]


ProvenanceKind = Literal["person", "run", "tool", "consolidation", "distillation", "import"]


class Provenance(Message):
    """Where a memory comes from."""

    kind: ProvenanceKind = "person"
    run_id: Id | None = None
    session_id: Id | None = None
    source: Text | None = Field(default=None, max_length=MAX_SOURCE_CHARS)


class ShownProvenance(Message):
    """Where a memory comes from, as its reader sees it."""

    kind: ProvenanceKind
    run_id: str | None
    session_id: str | None
    source: str | None


class MemoryFields(Message):
    """What may be said about a thing to remember. Without `scopes` it is the user's own."""

    layer: LayerName = "semantic"
    scopes: list[Text] | None = None
    subject: Text | None = None
    attribute: Text | None = None
    importance: float = Field(default=0.5, ge=0, le=1)
    confidence: float = Field(default=1.0, ge=0, le=1)
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires_at: Moment | None = None
    tags: list[Text] = []
    metadata: dict[str, Any] = {}
    external_id: Text | None = None
    provenance: Provenance = Provenance()
    outcome: Text | None = Field(default=None, max_length=MAX_OUTCOME_CHARS)
    confirmations: int = Field(default=0, ge=0, le=MAX_CONFIRMATIONS)


class NewMemory(MemoryFields):
    """One thing to remember."""

    text: Text


class Called(Message):
    """A request of a principal. What a class below adds to its base is never part of a public body."""

    caller: Caller


class Remember(Called):
    """Store memories; each is answered on its own."""

    memories: list[NewMemory] = Field(min_length=1, max_length=100)


class Remembered(Message):
    """What became of one memory."""

    status: Literal["created", "duplicate_of", "superseded", "rejected"]
    id: str | None = None
    supersedes: list[str] = []
    similar_to: str | None = None
    reason: str | None = None


class RememberedAll(Message):
    """One answer per memory, in order."""

    results: list[Remembered]


class MemoryView(Message):
    """A memory as its reader sees it."""

    id: str
    external_id: str | None
    layer: LayerName
    status: Literal["active", "cold", "superseded"]
    text: str
    scopes: list[str]
    subject: str | None
    attribute: str | None
    importance: float
    confidence: float
    trust: float
    q: float
    visits: int
    valid_from: Shown
    valid_to: Shown | None
    expires_at: Shown | None
    tags: list[str]
    metadata: dict[str, Any]
    provenance: ShownProvenance
    sources: list[str]
    superseded_by: str | None
    version: int
    created_at: Shown
    updated_at: Shown


class ById(Called):
    """One memory, by its id or its external id."""

    id: Text
    as_of: Moment | None = None


class ListMemories(Called):
    """A page of what the caller may see, newest first."""

    limit: int = Field(default=50, ge=1, le=200)
    before: Text | None = None
    layer: LayerName | None = None
    status: Literal["active", "cold"] | None = None
    subject: Text | None = None
    as_of: Moment | None = None


class MemoryPage(Message):
    """Memories, and the id to go on before."""

    items: list[MemoryView]
    next_before: str | None


class Changes(Message):
    """What to change of a memory: None stays. Identity, tenant and scopes' owner cannot be changed by metadata."""

    expected_version: int | None = None
    text: Text | None = None
    importance: float | None = Field(default=None, ge=0, le=1)
    confidence: float | None = Field(default=None, ge=0, le=1)
    valid_to: Moment | None = None
    expires_at: Moment | None = None
    tags: list[Text] | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["active"] | None = None


class PatchMemory(Changes, Called):
    """Correct a memory."""

    id: Text


class HistoryEntry(Message):
    """One change of a memory or of the chain of facts it belongs to."""

    memory_id: str
    version: int
    change: str
    text: str | None
    valid_from: Shown
    valid_to: Shown | None
    at: Shown


class History(Message):
    """Oldest first."""

    entries: list[HistoryEntry]


class Receipt(Message):
    """Everything that a deletion touched. `complete` is false while pages remain; `resume` continues them."""

    id: str
    deleted: list[str]
    rebuilt: list[str]
    vectors: int
    cache_epochs: int
    tombstones: int
    complete: bool = True
    resume: str | None = None
    count: int = 0


class ReceiptOf(Called):
    """The receipt of a deletion of the caller's own, as it stands now."""

    id: str


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


class Consolidation(Message):
    """Turn several episodes into one semantic memory; `dry_run` only shows the plan.

    `due` takes no more than the periodic work would take now: of owners with many episodes, those long unused.
    """

    dry_run: bool = False
    due: bool = False


class Consolidate(Consolidation, Called):
    """Consolidate what the caller may see."""


class ConsolidationPlan(Message):
    """Groups of episodes, and what each becomes."""

    groups: list[dict[str, Any]]
    created: list[str]
    applied: bool


class Distillation(Message):
    """Distil many candidates to at most `target` memories, in resumable stages."""

    candidates: list[Text] = Field(max_length=10_000)
    target: int = Field(default=50, ge=1, le=1_000)
    resume: Text | None = None


class Distil(Distillation, Called):
    """Distil for the caller."""


class Distilled(Message):
    """The selection and a report of each stage; stages without a model endpoint are told as skipped."""

    job_id: str
    selected: list[str]
    stages: list[dict[str, Any]]
    complete: bool


class OfUser(Called):
    """About one user of the caller's tenant; `resume` continues a paged answer."""

    user_id: str
    resume: Text | None = None
    limit: int = Field(default=500, ge=1, le=2_000)


class Exported(Message):
    """A page of everything remembered about a user, superseded and cold included."""

    items: list[MemoryView]
    resume: str | None


class UsageOf(Called):
    """Ask for usage."""


class Usage(Message):
    """Rows and bytes against their quotas, for the user and for the tenant."""

    user_rows: int
    user_rows_limit: int
    user_bytes: int
    user_bytes_limit: int
    tenant_rows: int
    tenant_rows_limit: int
    tenant_bytes: int
    tenant_bytes_limit: int


class Reconcile(Called):
    """Compare SQL and index for the caller's tenant and mend the index."""


class Reconciled(Message):
    """What was found and mended."""

    checked: int
    missing: int
    orphaned: int
    stale: int
