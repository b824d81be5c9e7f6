"""Calls about what is remembered."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from caisson.client.calls import segment
from caisson.client.memory_models import (
    ConsolidationPlan,
    Context,
    Distilled,
    FeedbackTaken,
    History,
    HistoryEntry,
    Memory,
    MemoryUsage,
    Recalled,
    Receipt,
    Reconciled,
    Remembered,
    RememberedAll,
)
from caisson.client.memory_requests import MemoryChanges, NewMemory, Recall
from caisson.client.models import rfc3339
from caisson.client.pages import paginate, parse
from caisson.client.requests import build
from caisson.client.transport import Transport

_LONG_S = 150.0


class MemoryCalls:
    """What a caller does with memories."""

    _transport: Transport

    async def remember(self, text: str, *, idempotency_key: str | None = None, **fields: Any) -> Remembered:
        """Remember one thing; `fields` are those of `NewMemory`.

        Raises:
            InvalidInput: a field is not of its form; nothing was sent.
        """
        body = build(NewMemory, {"text": text} | fields).body()
        return parse(Remembered, await self._transport.post("/v1/memories", body, key=idempotency_key))

    async def remember_all(
        self, memories: Sequence[NewMemory | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> list[Remembered]:
        """Remember up to a hundred things; each is answered on its own."""
        bodies = [item.body() if isinstance(item, NewMemory) else dict(item) for item in memories]
        answer = await self._transport.post("/v1/memories", {"memories": bodies}, key=idempotency_key)
        return parse(RememberedAll, answer).results

    def list_memories(
        self,
        *,
        layer: str | None = None,
        status: str | None = None,
        subject: str | None = None,
        as_of: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Memory, None]:
        """Iterate over what the caller may see, newest first."""
        params = {"layer": layer, "status": status, "subject": subject, "as_of": _time(as_of)}
        return paginate(self._transport, "/v1/memories", Memory, params=params, limit=limit)

    async def get_memory(self, memory_id: str, *, as_of: datetime | None = None) -> Memory:
        """Return a memory by its id or the product's own."""
        return parse(Memory, await self._transport.get(_path(memory_id), _given(as_of=_time(as_of))))

    async def memory_history(self, memory_id: str, *, as_of: datetime | None = None) -> list[HistoryEntry]:
        """Return every version of a memory and of the facts before and after it, oldest first."""
        answer = await self._transport.get(f"{_path(memory_id)}/history", _given(as_of=_time(as_of)))
        return parse(History, answer).entries

    async def change_memory(self, memory_id: str, **changes: Any) -> Memory:
        """Correct a memory; `changes` are those of `MemoryChanges`. `remove=["expires_at"]` takes its expiry away."""
        body = build(MemoryChanges, changes).body()
        return parse(Memory, await self._transport.patch(_path(memory_id), body))

    async def forget(self, memory_id: str) -> Receipt:
        """Forget a memory and everything made from it."""
        return parse(Receipt, await self._transport.delete(_path(memory_id)))

    async def get_receipt(self, receipt_id: str) -> Receipt:
        """Return a deletion's receipt as it stands now, by its own id or the deleted memory's."""
        path = f"/v1/memories/receipts/{segment(receipt_id, field='receipt_id')}"
        return parse(Receipt, await self._transport.get(path))

    async def recall(self, query: str, **wishes: Any) -> Recalled:
        """Return the memories nearest to a query; `wishes` are those of `Recall`."""
        body = build(Recall, {"query": query} | wishes).body()
        return parse(Recalled, await self._transport.post("/v1/memories/search", body))

    async def recall_context(self, query: str, **wishes: Any) -> Context:
        """Return the same as text for a model."""
        body = build(Recall, {"query": query} | wishes).body()
        return parse(Context, await self._transport.post("/v1/memories/context", body))

    async def give_feedback(
        self, retrieval_id: str, reward: float, *, idempotency_key: str | None = None
    ) -> FeedbackTaken:
        """Say what a recall was worth, from -1 to 1."""
        body = {"retrieval_id": retrieval_id, "reward": reward}
        return parse(FeedbackTaken, await self._transport.post("/v1/memories/feedback", body, key=idempotency_key))

    async def consolidate(self, *, dry_run: bool = False, due: bool = False) -> ConsolidationPlan:
        """Make one memory of several episodes, or show what would become of them.

        `due` takes no more than the service would take by itself now.
        """
        body = {"dry_run": dry_run, "due": due}
        answer = await self._transport.post("/v1/memories/consolidate", body, read_timeout_s=_LONG_S)
        return parse(ConsolidationPlan, answer)

    async def distil(
        self, candidates: Sequence[str] = (), *, target: int | None = None, resume: str | None = None
    ) -> Distilled:
        """Distil many candidates to a few, or go on with an unfinished job."""
        body = {"candidates": list(candidates)} | _given(target=target, resume=resume)
        return parse(Distilled, await self._transport.post("/v1/memories/distil", body, read_timeout_s=_LONG_S))

    async def erase_user(self, user_id: str) -> Receipt:
        """Erase everything remembered about a user, page by page, and return the receipt of all pages."""
        path = f"/v1/users/{segment(user_id, field='user_id')}/memories"
        deleted: list[str] = []
        rebuilt: list[str] = []
        resume: str | None = None
        while True:
            answer = await self._transport.delete(path, _given(resume=resume), read_timeout_s=_LONG_S)
            receipt = parse(Receipt, answer)
            deleted, rebuilt = deleted + receipt.deleted, rebuilt + receipt.rebuilt
            if receipt.complete or receipt.resume is None:
                return receipt.model_copy(update={"deleted": deleted, "rebuilt": rebuilt})
            resume = receipt.resume

    def export_user(self, user_id: str, *, limit: int | None = None) -> AsyncGenerator[Memory, None]:
        """Iterate over everything remembered about a user, superseded and cold too."""
        path = f"/v1/users/{segment(user_id, field='user_id')}/memories/export"
        return paginate(self._transport, path, Memory, params={}, limit=limit)

    async def memory_usage(self) -> MemoryUsage:
        """Return rows and bytes against their quotas."""
        return parse(MemoryUsage, await self._transport.get("/v1/memories/usage"))

    async def reconcile_memories(self) -> Reconciled:
        """Compare store and index for the tenant, and mend the index."""
        return parse(Reconciled, await self._transport.post("/v1/memories/reconcile", {}, read_timeout_s=_LONG_S))


def _path(memory_id: str) -> str:
    return f"/v1/memories/{segment(memory_id, field='memory_id')}"


def _time(value: datetime | None) -> str | None:
    return None if value is None else rfc3339(value)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
