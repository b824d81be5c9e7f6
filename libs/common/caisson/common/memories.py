"""What is written and read of memories over the bus (`caisson.rpc.memory.*`).

Invariant: whose a request is stands in its `caller` alone, which the gateway makes.
"""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from caisson.common.messages import Id, Message, Text
from caisson.common.moments import Moment, Shown

MAX_SOURCE_CHARS = 1_024
MAX_OUTCOME_CHARS = 4_096
MAX_CONFIRMATIONS = 1_000_000


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


Removable = Literal["valid_to", "expires_at"]


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
    """Correct a memory. What `removes` names has no end from then on."""

    id: Text
    removes: list[Removable] = []

    @field_validator("removes")
    @classmethod
    def _refuse_both(cls, removes: list[str], told: ValidationInfo) -> list[str]:
        if both := [name for name in removes if told.data.get(name) is not None]:
            raise ValueError(f"{both[0]} is both given and removed")
        return removes


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
    """The receipt of a deletion of the caller's own, as it stands now; by its id or that of a memory that it took."""

    id: str


class OfUser(Called):
    """About one user of the caller's tenant; `resume` continues a paged answer."""

    user_id: str
    resume: Text | None = None
    limit: int = Field(default=500, ge=1, le=2_000)


class Exported(Message):
    """A page of everything remembered about a user, superseded and cold included."""

    items: list[MemoryView]
    resume: str | None
