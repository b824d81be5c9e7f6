"""Making one memory of several episodes: for a caller who asks, and for owners with many that nobody uses any more.

Invariant: both take the same way from episodes to a plan and from a group to a memory.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

import structlog

from caisson.common.errors import QuotaExceeded, Unavailable
from caisson.common.ids import TenantId
from caisson.memory.domain.admission import refuse_text, trust_of
from caisson.memory.domain.consolidation import MAX_EPISODE_CHARS, Group, group_episodes, said
from caisson.memory.domain.distillation import Chat
from caisson.memory.domain.drafting import Wording, word
from caisson.memory.domain.indexing import Embedder, Vector
from caisson.memory.domain.instructions import is_instruction_like
from caisson.memory.domain.leasing import Lease
from caisson.memory.domain.lifetimes import SOONEST_COLD
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.phrasing import phrase
from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.relaying import Indexing

MAX_EPISODES_PLANNED = 1_000
"""Episodes that are looked at together, the oldest first."""

QUIET_FOR: timedelta = SOONEST_COLD
"""Episodes that were neither used nor changed for so long are what the periodic work takes: the next thing that would
happen to them is to go cold one by one, and to be found no more."""

_EMBEDDED_AT_ONCE = 64
_PAGES_PER_REQUEST = 3
_FIRST = datetime.min.replace(tzinfo=UTC)
_INSTRUCTION = (
    "Each string holds several related notes, one a line. Replace it with one text that says all that the notes say, "
    "keeps every number, name, date and negation, and adds nothing."
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where episodes of one owner and one set of scopes are."""

    tenant: TenantId
    owner_scope: str
    scope_key: bytes
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Episodes in force at `now` that were neither used nor changed for long, and are short enough to be grouped."""

    now: datetime

    @property
    def since(self) -> datetime:
        """Since when."""
        return self.now - QUIET_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An episode after which others follow in the order of time, and by default none."""

    created_at: datetime = _FIRST
    memory_id: str = ""

    @classmethod
    def of(cls, episode: Memory) -> "Mark":
        """Return the mark that an episode is."""
        return cls(created_at=episode.created_at, memory_id=episode.memory_id)


BEGINNING = Mark()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What becomes of some episodes of a place, and after which one to go on; None where these were the last."""

    groups: list[Group]
    following: Mark | None


class Consolidating(Protocol):
    """The side of the store that makes one memory of several."""

    async def episodes(self, filter_: HardFilter, limit: int, *, after: Mark) -> list[Memory]:
        """Return the oldest active episodes after a mark that the principal may change."""

    async def quiet_episodes(self, place: Place, quiet: Quiet, limit: int, *, after: Mark) -> list[Memory]:
        """Return the oldest quiet episodes of a place after a mark."""

    async def places(self, quiet: Quiet, *, least: int, limit: int, after: Place | None = None) -> list[Place]:
        """Return the next places, in a fixed order, with at least so many quiet episodes."""

    async def own_places(self, quiet: Quiet, principal: Principal, *, least: int, limit: int) -> list[Place]:
        """Return the first of those whose memories a principal may change."""

    async def consolidate(
        self, group: Group, principal: Principal, wording: Wording, *, lease: Lease | None = None
    ) -> str | None:
        """Make one memory of a group and let its sources go cold; None where a source changed meanwhile.

        Raises:
            LeaseLost: periodic work names its lease, and another replica has it.
            QuotaExceeded: the memory would take its user beyond the quota.
        """


class Consolidator:
    """Plans, and does what was planned. Without a model the summary is made of the episodes' own words.

    `least` is how many quiet episodes a place needs for the periodic work to look at it; 0 switches that off. `page`
    is how many episodes are looked at together.
    """

    def __init__(
        self,
        store: Consolidating,
        embedder: Embedder,
        indexing: Indexing,
        chat: Chat | None,
        *,
        least: int,
        page: int = MAX_EPISODES_PLANNED,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexing = indexing
        self._chat = chat
        self._least = least
        self._page = page

    async def plan(self, filter_: HardFilter) -> list[Group]:
        """Return what becomes of the oldest active episodes that a principal may change."""
        return await self._first_groups(lambda after: self._store.episodes(filter_, self._page, after=after))

    async def plan_due(self, filter_: HardFilter) -> list[Group]:
        """Return what the periodic work would do first for owners whose memories a principal may change."""
        if self._least == 0:
            return []
        quiet, most = Quiet(now=filter_.now), -(-self._page // self._least)
        groups: list[Group] = []
        for place in await self._store.own_places(quiet, filter_.principal, least=self._least, limit=most):
            groups += await self._first_groups(partial(self._quiet, place, quiet))
        return groups

    async def plan_page(self, place: Place, quiet: Quiet, after: Mark) -> Page:
        """Return what becomes of the next quiet episodes of one place.

        The newer half of a full page is looked at again with those that follow, so that neighbours in time meet.
        """
        episodes = await self._quiet(place, quiet, after)
        is_last = len(episodes) < self._page
        following = None if is_last else Mark.of(episodes[(self._page - 1) // 2])
        return Page(groups=await self._grouped(episodes), following=following)

    async def due_places(self, quiet: Quiet, after: Place | None, *, limit: int) -> list[Place]:
        """Return the next places that the periodic work has to look at."""
        if self._least == 0:
            return []
        return await self._store.places(quiet, least=self._least, limit=limit, after=after)

    async def apply(self, group: Group, principal: Principal) -> str | None:
        """Make one memory of a group for a principal; None where a source changed meanwhile."""
        return await self._apply(group, principal, None)

    async def apply_for_owner(self, group: Group, lease: Lease) -> str | None:
        """Do so under a lease, charged to whoever is charged for the oldest source; None where that cannot be."""
        oldest = group.episodes[0]
        principal = Principal(tenant=oldest.tenant, user=oldest.user, granted=frozenset(group.scopes))
        try:
            return await self._apply(group, principal, lease)
        except QuotaExceeded as error:
            log.info("consolidating.no_room", tenant=oldest.tenant, reason=error.detail)
            return None

    async def _apply(self, group: Group, principal: Principal, lease: Lease | None) -> str | None:
        text = await self._summary(group)
        wording = word(text, principal, trust=trust_of(text, "consolidation"))
        memory_id = await self._store.consolidate(group, principal, wording, lease=lease)
        if memory_id is not None:
            await self._indexing.catch_up(principal.tenant, [memory_id, *group.ids])
        return memory_id

    async def _quiet(self, place: Place, quiet: Quiet, after: Mark) -> list[Memory]:
        return await self._store.quiet_episodes(place, quiet, self._page, after=after)

    async def _first_groups(self, read: Callable[[Mark], Awaitable[list[Memory]]]) -> list[Group]:
        """Return what becomes of the first page of which anything does; a request passes over two others at most."""
        after = BEGINNING
        for _ in range(_PAGES_PER_REQUEST):
            episodes = await read(after)
            groups = await self._grouped(episodes)
            if groups or len(episodes) < self._page:
                return groups
            after = Mark.of(episodes[-1])
        return []

    async def _grouped(self, episodes: Sequence[Memory]) -> list[Group]:
        vectors = await self._vectors(episodes)
        return await beside([one.text for one in episodes], lambda: group_episodes(episodes, vectors))

    async def _vectors(self, episodes: Sequence[Memory]) -> list[Vector] | None:
        texts = [phrase(episode.text[:MAX_EPISODE_CHARS], episode.subject, episode.attribute) for episode in episodes]
        firsts = await beside(texts, lambda: [(self._embedder.chunks(text) or [text])[0] for text in texts])
        vectors: list[Vector] = []
        try:
            for at in range(0, len(firsts), _EMBEDDED_AT_ONCE):
                vectors += await self._embedder.embed(firsts[at : at + _EMBEDDED_AT_ONCE])
        except Unavailable as error:
            log.warning("consolidating.by_subject_only", reason=error.detail)
            return None
        return vectors

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
