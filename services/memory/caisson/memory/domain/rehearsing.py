"""A question set played through the real index, embedder and recall, beside no store.

Invariant: the set's memories are held against the same hard filter as the store's are, and what an asker may not see
is counted wherever it shows up.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.gating import Thresholds
from caisson.memory.domain.hashing import content_hash
from caisson.memory.domain.layers import Layer, Status
from caisson.memory.domain.memories import Memory, Origin
from caisson.memory.domain.principals import USER_SCOPE_PREFIX, HardFilter, Principal
from caisson.memory.domain.question_sets import Question, QuestionSet, Remembered
from caisson.memory.domain.reading import Confirmed, Epoch
from caisson.memory.domain.retrievals import Retrieval
from caisson.memory.domain.utility import learn

OPEN = Thresholds(dense=-1.0, lexical=0.0)
"""A gate that lets everything through."""


def principal_of(question: Question) -> Principal:
    """Return who asks."""
    return Principal(tenant=TenantId(question.tenant), user=UserId(question.user), granted=frozenset(question.scopes))


def filter_of(question: Question, now: datetime) -> HardFilter:
    """Return what the asker may see."""
    return HardFilter(principal=principal_of(question), now=now, as_of=question.as_of or now)


def may_see(memory: Memory, filter_: HardFilter) -> bool:
    """Whether the hard filter admits a memory; the store says the same in SQL."""
    return (
        memory.tenant == filter_.principal.tenant
        and bool(filter_.principal.allowed & set(memory.scopes))
        and memory.status is not Status.COLD
        and memory.valid_from <= filter_.as_of
        and (memory.valid_to is None or memory.valid_to > filter_.as_of)
        and (memory.expires_at is None or memory.expires_at > filter_.now)
        and (not filter_.layers or memory.layer in filter_.layers)
    )


class SetStore:
    """The set's memories as a store, with what they learn."""

    def __init__(self, questions: QuestionSet) -> None:
        self.memories = {item.id: _memory(item) for item in questions.memories}
        self._told: dict[str, tuple[str, ...]] = {}

    async def confirm(self, memory_ids: Sequence[str], filter_: HardFilter) -> Confirmed:
        """Return those of the ids that the asker may see; a set has one epoch."""
        found = {memory_id: self.memories[memory_id] for memory_id in memory_ids}
        seen = {memory_id: memory for memory_id, memory in found.items() if may_see(memory, filter_)}
        return Confirmed(memories=seen, epoch=Epoch(changes=0, until=None))

    async def expired_among(self, memory_ids: Sequence[str], filter_: HardFilter) -> int:
        """Return 0: nothing in a set expires."""
        del memory_ids, filter_
        return 0

    async def record(self, retrieval: Retrieval) -> None:
        """Keep what was told."""
        self._told[retrieval.retrieval_id] = retrieval.injected

    async def reward(self, retrieval_id: str, reward: float, filter_: HardFilter) -> list[str]:
        """Let what was told learn."""
        told = self._told.pop(retrieval_id)
        for memory_id in told:
            memory = self.memories[memory_id]
            if may_see(memory, filter_):
                q = learn(memory.q, reward=reward, shared_by=len(told))
                self.memories[memory_id] = replace(memory, q=q, visits=memory.visits + 1)
        return list(told)


def _memory(item: Remembered) -> Memory:
    tenant = TenantId(item.tenant)
    at = item.valid_from.astimezone(UTC)
    own = f"{USER_SCOPE_PREFIX}{item.user}"
    return Memory(
        memory_id=item.id,
        external_id=None,
        tenant=tenant,
        user=UserId(item.user),
        owner_scope=own if own in item.scopes else item.scopes[0],
        scopes=tuple(item.scopes),
        layer=Layer(item.layer),
        status=Status.ACTIVE,
        text=item.text,
        content_hash=content_hash(tenant, item.text),
        subject=None,
        attribute=None,
        outcome=None,
        confirmations=0,
        importance=0.5,
        confidence=1.0,
        trust=1.0,
        q=0.0,
        visits=0,
        valid_from=at,
        valid_to=item.valid_to.astimezone(UTC) if item.valid_to else None,
        expires_at=None,
        tags=(),
        metadata={},
        origin=Origin(kind="import"),
        sources=(),
        superseded_by=None,
        version=1,
        used_at=at,
        created_at=at,
        updated_at=at,
    )
