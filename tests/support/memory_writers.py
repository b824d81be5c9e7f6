"""A user who changes its memories in every way there is, one request after the other, and keeps a journal."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

from caisson.common import subjects
from caisson.common.errors import CaissonError, Conflict, NotFound
from caisson.common.memories import (
    ById,
    Caller,
    Exported,
    MemoryView,
    NewMemory,
    OfUser,
    PatchMemory,
    Provenance,
    Receipt,
    Remember,
    RememberedAll,
)
from caisson.common.memory_upkeep import Consolidate, ConsolidationPlan
from caisson.common.messages import Message
from caisson.common.subjects import Subject
from tests.support.memory_journal import Journal, Seen, Unanswered

ReplyT = TypeVar("ReplyT", bound=Message)
Ask = Callable[[Subject, Message, type[ReplyT]], Awaitable[ReplyT]]

_WORDS = (
    "amber",
    "barley",
    "copper",
    "dusk",
    "ember",
    "fjord",
    "gravel",
    "harbour",
    "iris",
    "juniper",
    "kelp",
    "larch",
)
_LONG_WORDS = 700
_KEPT = 60
_ATTRIBUTES = 3
_PAGE = 7


@dataclass(kw_only=True)
class Writer:
    """One writer. Nobody else writes what it owns, so that its journal is all there is to know."""

    ask: Ask[Any]
    tenant: str
    name: str
    rng: random.Random
    journal: Journal = field(default_factory=Journal)
    acknowledged: int = 0
    _times_erased: int = 0
    _erasing: bool = False
    _resume: str | None = None

    @property
    def caller(self) -> Caller:
        """Who it is: another user after each erasure."""
        return Caller(tenant_id=self.tenant, user_id=f"{self.name}-{self._times_erased}", scopes=[])

    async def work(self) -> None:
        """Change things until a request gets no answer, or an error that says that its effect is unknown."""
        while True:
            action = self._erase if self._erasing else self._chosen()
            try:
                await action()
            except CaissonError as error:
                if not isinstance(error, NotFound | Conflict):
                    return
                raise
            self.journal.unanswered = None
            self.acknowledged += 1

    async def exported(self) -> dict[str, Seen]:
        """Export everything that it owns."""
        found: dict[str, Seen] = {}
        resume: str | None = None
        while True:
            asked = OfUser(caller=self.caller, user_id=self.caller.user_id, resume=resume, limit=50)
            page = await self.ask(subjects.MEMORY_EXPORT_USER, asked, Exported)
            found |= {item.id: _seen(item) for item in page.items}
            resume = page.resume
            if resume is None:
                return found

    def _chosen(self) -> Callable[[], Awaitable[None]]:
        deletions = 6 if len(self.journal.kept) > _KEPT else 2
        actions = (
            self._remember,
            self._learn,
            self._live,
            self._correct,
            self._consolidate,
            self._delete,
            self._begin,
        )
        chosen: Callable[[], Awaitable[None]]
        (chosen,) = self.rng.choices(actions, weights=(4, 2, 1, 2, 1, deletions, 0.15))
        return chosen

    def _text(self) -> str:
        """Return a text with a word of its own; one in ten is long enough for several points."""
        words = self.rng.choices(_WORDS, k=_LONG_WORDS if self.rng.random() < 0.1 else 6)
        return f"mark{uuid4().hex[:12]} {' '.join(words)}"

    async def _say(self, memories: list[NewMemory]) -> None:
        """Remember texts that are new: all of them in one transaction."""
        self.journal.unanswered = Unanswered(adds=tuple(new.text for new in memories))
        request = Remember(caller=self.caller, memories=memories)
        answer = await self.ask(subjects.MEMORY_REMEMBER, request, RememberedAll)
        for new, result in zip(memories, answer.results, strict=True):
            if result.status not in {"created", "superseded"} or result.id is None:
                raise AssertionError(f"{new.text[:60]!r} became {result}")
            self.journal.keep(result.id, new.text)
            if new.layer == "episodic":
                self.journal.episodes.add(result.id)
            if new.attribute is not None:
                self.journal.learn(new.attribute, result.id)

    async def _remember(self) -> None:
        scopes = self.rng.choice((None, ["tenant", f"user:{self.caller.user_id}"]))
        await self._say([NewMemory(text=self._text(), scopes=scopes) for _ in range(self.rng.randint(1, 5))])

    async def _learn(self) -> None:
        """Say what is now so: it replaces the fact before."""
        attribute = f"state-{self.rng.randrange(_ATTRIBUTES)}"
        await self._say([NewMemory(text=self._text(), subject="thing", attribute=attribute)])

    async def _live(self) -> None:
        subject = f"trip {self.rng.randrange(3)}"
        provenance = Provenance(kind="run", run_id=f"run_{uuid4().hex}")
        words = [self._text()[:80] for _ in range(3)]
        await self._say(
            [
                NewMemory(text=text, layer="episodic", outcome="ok", subject=subject, provenance=provenance)
                for text in words
            ]
        )

    async def _correct(self) -> None:
        plain = list(self.journal.kept.keys() - self.journal.summaries - self.journal.ever_facts)
        if not plain:
            return
        memory_id, text = self.rng.choice(plain), self._text()[:80]
        self.journal.unanswered = Unanswered(rewords=(memory_id, text))
        request = PatchMemory(caller=self.caller, id=memory_id, text=text)
        await self.ask(subjects.MEMORY_PATCH, request, MemoryView)
        self.journal.keep(memory_id, text)

    async def _consolidate(self) -> None:
        self.journal.unanswered = Unanswered(summarises=True)
        told = await self.ask(subjects.MEMORY_CONSOLIDATE, Consolidate(caller=self.caller), ConsolidationPlan)
        for memory_id in told.created:
            self.journal.summarise(memory_id)

    async def _delete(self) -> None:
        if not self.journal.kept:
            return
        memory_id = self.rng.choice(list(self.journal.kept))
        self.journal.unanswered = Unanswered(deletes=memory_id)
        receipt = await self.ask(subjects.MEMORY_DELETE, ById(caller=self.caller, id=memory_id), Receipt)
        deleted = set(receipt.deleted)
        if memory_id not in deleted or not deleted <= self.journal.reach(memory_id):
            raise AssertionError(f"deleting {memory_id} took {deleted}")
        self.journal.lose(deleted)

    async def _begin(self) -> None:
        """Have everything erased, page by page."""
        self._erasing = True
        await self._erase()

    async def _erase(self) -> None:
        self.journal.unanswered = Unanswered(erases=True)
        while True:
            asked = OfUser(caller=self.caller, user_id=self.caller.user_id, resume=self._resume, limit=_PAGE)
            receipt = await self.ask(subjects.MEMORY_ERASE_USER, asked, Receipt)
            self.journal.lose(receipt.deleted)
            self._resume = receipt.resume
            if receipt.complete:
                break
        if left := await self.exported():
            raise AssertionError(f"an erasure is complete and {list(left)} are there")
        self.journal.lose(list(self.journal.kept))
        self.journal.facts.clear()
        self._erasing, self._times_erased = False, self._times_erased + 1


def _seen(view: MemoryView) -> Seen:
    return Seen(
        text=view.text,
        status=view.status,
        layer=view.layer,
        attribute=view.attribute,
        is_summary=view.provenance.kind == "consolidation",
    )
