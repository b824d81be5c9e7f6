"""Deleting one memory, or everything of a user. The answer is a receipt, complete once no copy is left."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from prometheus_client import Counter

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import InvalidInput, NotFound
from caisson.common.ids import TenantId, UserId
from caisson.common.memories import ById, OfUser, Receipt, ReceiptOf
from caisson.memory.domain import receipts
from caisson.memory.domain.jobs import Job, JobKind, Jobs
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.relaying import Indexing
from caisson.memory.domain.writing import Forgetting, Forgotten
from caisson.memory.handlers.callers import Clock, filter_of, owned_scope, principal_of

FORGOTTEN = Counter("caisson_memory_forgotten_total", "Memories that were deleted on request")


class ForgettingHandlers:
    """Deletes from the store first, then from the index; what the index misses, its relay removes."""

    def __init__(
        self, forgetting: Forgetting, jobs: Jobs, indexing: Indexing, *, clock: Clock, tell: Callable[[], None]
    ) -> None:
        self._forgetting = forgetting
        self._jobs = jobs
        self._indexing = indexing
        self._clock = clock
        self._tell = tell

    def register(self, bus: Bus) -> None:
        """Serve the deletions on `bus`."""
        bus.serve(subjects.MEMORY_DELETE, ById, self.delete)
        bus.serve(subjects.MEMORY_ERASE_USER, OfUser, self.erase_user)
        bus.serve(subjects.MEMORY_RECEIPT, ReceiptOf, self.receipt)

    async def delete(self, request: ById) -> Receipt:
        """Delete a memory and everything made from it."""
        filter_ = filter_of(request.caller, self._clock())
        receipt_id, forgotten = await self._forgetting.forget(request.id, filter_)
        complete = await self._follow(filter_.principal.tenant, forgotten)
        if complete:
            await self._jobs.complete(filter_.principal, receipt_id)
        return Receipt(id=receipt_id, **receipts.told(forgotten, complete=complete))

    async def erase_user(self, request: OfUser) -> Receipt:
        """Delete a page of everything of a user; the receipt counts all pages so far and says how to go on."""
        principal = principal_of(request.caller)
        owner = owned_scope(request.user_id, principal)
        if request.resume is None:
            job = await self._jobs.open(JobKind.ERASE_USER, principal, {"owner": owner, "left": []})
        else:
            job = await self._jobs.resume(JobKind.ERASE_USER, principal, request.resume)
            await self._check_same(job, owner)
        if job.done:
            return Receipt(id=job.job_id, **job.receipt)
        told, job = await self._erase_page(job, principal, request)
        await self._jobs.save(job)
        return Receipt(id=job.job_id, **told)

    async def receipt(self, request: ReceiptOf) -> Receipt:
        """Return a receipt as it stands now: a single deletion is complete once the relay has done what was left.

        An erasure says how to go on with it, as its last page did.
        """
        principal = principal_of(request.caller)
        receipt_id, kept = await self._jobs.receipt(principal, request.id)
        told, touched = receipts.read(kept)
        if (
            not told["complete"]
            and told["resume"] is None
            and await self._indexing.is_done(principal.tenant, touched)
        ):
            await self._jobs.complete(principal, receipt_id)
            told = told | {"complete": True}
        return Receipt(id=receipt_id, **told)

    async def end_session(self, fact: Envelope) -> None:
        """Delete the memories of a session that was deleted, page by page. What the index misses, its relay removes.

        Raises:
            InvalidInput: the fact names no session.
        """
        if fact.tenant_id is None or fact.session_id is None:
            raise InvalidInput("no session is named", field="session_id")
        tenant = TenantId(fact.tenant_id)
        while (forgotten := await self._forgetting.end_session(tenant, fact.session_id)).deleted:
            await self._follow(tenant, forgotten)

    async def _check_same(self, job: Job, owner: str) -> None:
        """Raise NotFound where a receipt is about another user: going on was granted for that one."""
        if job.state["owner"] != owner:
            if not job.done:
                await self._jobs.save(job)
            raise NotFound("no such job")

    async def _erase_page(self, job: Job, principal: Principal, request: OfUser) -> tuple[dict[str, Any], Job]:
        owner, tenant = str(job.state["owner"]), principal.tenant
        job, forgotten = await self._forgetting.forget_owned(principal, job, request.limit)
        left = list(dict.fromkeys((*job.state["left"], *await self._indexing.unremoved(tenant))))
        removed = await self._follow(tenant, forgotten, left=left)
        more = await self._forgetting.owns(tenant, owner)
        if not more:
            await self._forgetting.forget_user(tenant, UserId(request.user_id))
        complete = removed and not more
        kept = job.receipt | {"complete": complete, "resume": None if complete else job.job_id}
        page = receipts.told(forgotten, complete=complete)
        told = kept | {name: page[name] for name in ("deleted", "rebuilt")}
        state = {"owner": owner, "left": [] if removed else left}
        return told, replace(job, state=state, receipt=kept, done=complete)

    async def _follow(self, tenant: TenantId, forgotten: Forgotten, *, left: Sequence[str] = ()) -> bool:
        """Have the index follow, with what is left of earlier pages too; those have been counted."""
        FORGOTTEN.inc(len(forgotten.deleted))
        removed = await self._indexing.remove(tenant, tuple(dict.fromkeys((*left, *forgotten.deleted))))
        replaced = await self._indexing.replace(tenant, forgotten.rebuilt) if forgotten.rebuilt else True
        self._tell()
        return removed and replaced
