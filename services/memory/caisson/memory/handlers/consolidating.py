"""Consolidating a caller's episodes: a plan that can be shown first, then one transaction per group."""

from time import monotonic

import structlog

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import Unavailable
from caisson.common.memories import Consolidate, ConsolidationPlan
from caisson.memory.domain.admission import refuse_text, trust_of
from caisson.memory.domain.consolidation import MAX_EPISODE_CHARS, Group, group_episodes, said
from caisson.memory.domain.distillation import Chat
from caisson.memory.domain.drafting import word
from caisson.memory.domain.indexing import Embedder, Vector
from caisson.memory.domain.instructions import is_instruction_like
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.phrasing import phrase
from caisson.memory.domain.relaying import Indexing
from caisson.memory.domain.writing import Consolidating
from caisson.memory.handlers.callers import Clock, filter_of

_EPISODES = 1_000
_APPLY_WITHIN_S = 10.0
_INSTRUCTION = (
    "Each string holds several related notes, one a line. Replace it with one text that says all that the notes say, "
    "keeps every number, name, date and negation, and adds nothing."
)

log = structlog.get_logger(__name__)


class ConsolidatingHandlers:
    """Makes one memory of several episodes. Without a model the summary is made of the episodes' own words."""

    def __init__(
        self,
        consolidating: Consolidating,
        embedder: Embedder,
        indexing: Indexing,
        chat: Chat | None,
        *,
        clock: Clock,
    ) -> None:
        self._consolidating = consolidating
        self._embedder = embedder
        self._indexing = indexing
        self._chat = chat
        self._clock = clock

    def register(self, bus: Bus) -> None:
        """Serve consolidation on `bus`."""
        bus.serve(subjects.MEMORY_CONSOLIDATE, Consolidate, self.consolidate)

    async def consolidate(self, request: Consolidate) -> ConsolidationPlan:
        """Plan, and unless `dry_run`, apply each group for itself; repeating goes on where it stopped."""
        filter_ = filter_of(request.caller, self._clock())
        principal = filter_.principal
        episodes = await self._consolidating.episodes(filter_, _EPISODES)
        groups = group_episodes(episodes, await self._vectors(episodes))
        created = []
        deadline = monotonic() + _APPLY_WITHIN_S
        if not request.dry_run:
            for group in groups:
                if monotonic() > deadline:
                    break
                text = await self._summary(group)
                wording = word(text, principal, trust=trust_of(text, "consolidation"))
                memory_id = await self._consolidating.consolidate(group, principal, wording)
                if memory_id is not None:
                    created.append(memory_id)
                    await self._indexing.catch_up(principal.tenant, [memory_id, *group.ids])
        return ConsolidationPlan(
            groups=[_told(group) for group in groups], created=created, applied=not request.dry_run
        )

    async def _vectors(self, episodes: list[Memory]) -> list[Vector] | None:
        texts = [phrase(episode.text[:MAX_EPISODE_CHARS], episode.subject, episode.attribute) for episode in episodes]
        try:
            return await self._embedder.embed([(self._embedder.chunks(text) or [text])[0] for text in texts])
        except Unavailable as error:
            log.warning("consolidating.by_subject_only", reason=error.detail)
            return None

    async def _summary(self, group: Group) -> str:
        """The model's text where there is one and it may be remembered; otherwise the episodes' own words."""
        if self._chat is None:
            return group.text
        try:
            notes = "\n".join(said(episode) for episode in group.episodes)
            answer = (await self._chat.reword(_INSTRUCTION, [notes]))[0]
        except Unavailable as error:
            log.warning("consolidating.extractive", reason=error.detail)
            return group.text
        if answer is None or refuse_text(answer) is not None or is_instruction_like(answer):
            return group.text
        return answer


def _told(group: Group) -> dict[str, object]:
    return {
        "sources": list(group.ids),
        "scopes": list(group.scopes),
        "subject": group.subject,
        "attribute": group.attribute,
        "text": group.text,
    }
