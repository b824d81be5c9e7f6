"""What becomes a memory, and what is corrected. Every memory of a request gets its own answer."""

from collections.abc import Callable
from typing import assert_never

from prometheus_client import Counter

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import InvalidInput
from caisson.common.memories import MemoryView, PatchMemory, Remember, Remembered, RememberedAll, Removable
from caisson.memory.domain.admission import Admitted, Rejected, admit, check_size, refuse_text, trust_of
from caisson.memory.domain.drafting import Draft, check_metadata, check_tags, draft, word
from caisson.memory.domain.ends import End, Endless
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.moments import in_utc
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.proposing import Proposing
from caisson.memory.domain.reading import Reading
from caisson.memory.domain.relaying import Indexing
from caisson.memory.domain.writing import (
    Correcting,
    Correction,
    Created,
    Duplicate,
    Refused,
    Remembering,
    Superseded,
    Written,
)
from caisson.memory.handlers.callers import Clock, filter_of
from caisson.memory.handlers.views import view_of

REMEMBERED = Counter("caisson_memory_remembered_total", "What became of memories that were offered", ["status"])
REJECTED = Counter("caisson_memory_rejected_total", "Memories that were not admitted", ["reason"])


class RememberingHandlers:
    """Admits, compares, stores, and lets the index catch up before it answers."""

    def __init__(
        self,
        reading: Reading,
        remembering: Remembering,
        correcting: Correcting,
        proposing: Proposing,
        indexing: Indexing,
        *,
        clock: Clock,
        tell: Callable[[], None],
    ) -> None:
        self._reading = reading
        self._remembering = remembering
        self._correcting = correcting
        self._proposing = proposing
        self._indexing = indexing
        self._clock = clock
        self._tell = tell

    def register(self, bus: Bus) -> None:
        """Serve the writes on `bus`."""
        bus.serve(subjects.MEMORY_REMEMBER, Remember, self.remember)
        bus.serve(subjects.MEMORY_PATCH, PatchMemory, self.correct)

    async def remember(self, request: Remember) -> RememberedAll:
        """Store memories in one transaction; when this answers, a search finds them if the index is up."""
        filter_ = filter_of(request.caller, self._clock())
        for position, new in enumerate(request.memories):
            check_size(new.text, field=f"memories.{position}.text")
        injected = await self._injected(request, filter_)
        told = [text for texts in injected.values() for text in texts.values()]
        texts = [text for new in request.memories for text in (new.text, *told)]
        verdicts, drafts = await beside(texts, lambda: _read(request, filter_, injected))
        compared = await self._proposing.compare(list(drafts.values()), filter_)
        written = await self._remembering.remember(compared.drafts, filter_.principal) if drafts else []
        await self._follow(filter_, written, is_up=compared.is_up)
        answers = dict(zip(drafts, map(_answer, written), strict=True))
        results = [
            _rejected(verdict) if isinstance(verdict, Rejected) else answers[position]
            for position, verdict in enumerate(verdicts)
        ]
        for result in results:
            REMEMBERED.labels(status=result.status).inc()
        return RememberedAll(results=results)

    async def correct(self, request: PatchMemory) -> MemoryView:
        """Change what is given and nothing else."""
        filter_ = filter_of(request.caller, self._clock())
        correction = await beside([request.text], lambda: _correction(request, filter_))
        changed = await self._correcting.correct(request.id, correction, filter_)
        await self._indexing.catch_up(filter_.principal.tenant, [changed.memory_id])
        return view_of(changed)

    async def _injected(self, request: Remember, filter_: HardFilter) -> dict[str, dict[str, str]]:
        sessions = {new.provenance.session_id for new in request.memories if new.provenance.session_id}
        return {session: await self._reading.injected(session, filter_) for session in sorted(sessions)}

    async def _follow(self, filter_: HardFilter, written: list[Written], *, is_up: bool) -> None:
        """Let the index catch up where it is up; the relay does the rest."""
        changed = [
            memory_id
            for result in written
            if isinstance(result, Created | Superseded | Duplicate)
            for memory_id in (result.memory_id, *(result.replaced if isinstance(result, Superseded) else ()))
        ]
        if changed and is_up:
            await self._indexing.catch_up(filter_.principal.tenant, changed)
        if changed:
            self._tell()


def _read(
    request: Remember, filter_: HardFilter, injected: dict[str, dict[str, str]]
) -> tuple[list[Admitted | Rejected], dict[int, Draft]]:
    """Decide about each memory, and make drafts, by position, of those that are admitted."""
    verdicts = [admit(new, injected=injected.get(new.provenance.session_id or "", {})) for new in request.memories]
    drafts = {
        position: draft(new, filter_.principal, trust=verdict.trust, now=filter_.now, field=f"memories.{position}")
        for position, (new, verdict) in enumerate(zip(request.memories, verdicts, strict=True))
        if isinstance(verdict, Admitted)
    }
    return verdicts, drafts


def _answer(written: Written) -> Remembered:
    match written:
        case Created(memory_id=memory_id, similar_to=similar_to):
            return Remembered(status="created", id=memory_id, similar_to=similar_to)
        case Duplicate(memory_id=memory_id):
            return Remembered(status="duplicate_of", id=memory_id, similar_to=memory_id)
        case Superseded(memory_id=memory_id, replaced=replaced):
            return Remembered(status="superseded", id=memory_id, supersedes=list(replaced))
        case Refused(reason=reason):
            REJECTED.labels(reason=reason.partition(":")[0]).inc()
            return Remembered(status="rejected", reason=reason)
    assert_never(written)


def _rejected(verdict: Rejected) -> Remembered:
    REJECTED.labels(reason=verdict.reason.partition(":")[0]).inc()
    return Remembered(status="rejected", reason=verdict.reason, similar_to=verdict.similar_to)


def _correction(request: PatchMemory, filter_: HardFilter) -> Correction:
    wording = None
    if request.text is not None:
        check_size(request.text, field="text")
        if reason := refuse_text(request.text):
            raise InvalidInput(f"the text may not be remembered: {reason}", field="text")
        wording = word(request.text, filter_.principal, trust=trust_of(request.text, "person"))
    return Correction(
        expected_version=request.expected_version,
        wording=wording,
        importance=None if request.importance is None else float(request.importance),
        confidence=None if request.confidence is None else float(request.confidence),
        valid_to=_end(request, "valid_to"),
        expires_at=_end(request, "expires_at"),
        tags=None if request.tags is None else check_tags(request.tags, "tags"),
        metadata=None if request.metadata is None else check_metadata(request.metadata, "metadata"),
        wake=request.status == "active",
    )


def _end(request: PatchMemory, name: Removable) -> End | None:
    return Endless() if name in request.removes else in_utc(getattr(request, name), name)
