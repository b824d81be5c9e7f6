"""What searches lately found, for whoever asks the same again: the model calls of one run mostly do.

Invariant: only ids and scores are kept, never a text; they serve the same principal alone, while nothing that it may
see has changed, and the store still confirms every one of them.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Self

from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.reading import EPOCH_SPAN, Epoch
from caisson.memory.domain.searching import INDEX_BACKEND, Searched

_MAX_CANDIDATES = 20_000
_MAX_PRINCIPALS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What decides the candidates of a search at a time. The principal is in it whole: another one shares no answer,
    and cannot tell by the time of its own whether somebody asked the same.
    """

    principal: Principal
    layers: frozenset[Layer]
    as_of: datetime | None
    limit: int
    query: bytes

    @classmethod
    def of(cls, query: str, filter_: HardFilter, limit: int) -> Self:
        """Return the question."""
        as_of = None if filter_.as_of == filter_.now else filter_.as_of
        digest = sha256(query.encode()).digest()
        return cls(principal=filter_.principal, layers=filter_.layers, as_of=as_of, limit=limit, query=digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a search found, and the epoch that it is of."""

    searched: Searched
    epoch: Epoch
    since: datetime

    def may_serve(self, now: datetime) -> bool:
        """Whether nothing comes into force between then and now, and it is not long ago."""
        comes = self.epoch.until
        return self.since <= now < self.since + EPOCH_SPAN and (comes is None or now < comes)


class RecentSearches:
    """The least recently used go first; what all hold together is bounded, and so is whose epochs are known."""

    def __init__(self, *, max_candidates: int = _MAX_CANDIDATES, max_principals: int = _MAX_PRINCIPALS) -> None:
        self._max_candidates = max_candidates
        self._max_principals = max_principals
        self._kept: OrderedDict[Question, Kept] = OrderedDict()
        self._candidates = 0
        self._changes: OrderedDict[Principal, int] = OrderedDict()

    def get(self, question: Question, now: datetime) -> Kept | None:
        """Return what was found, to be used if the store still is in its epoch; what is past its time goes."""
        kept = self._kept.get(question)
        if kept is None:
            return None
        if not kept.may_serve(now):
            self.drop(question)
            return None
        self._kept.move_to_end(question)
        return kept

    def last_epoch(self, principal: Principal) -> int | None:
        """Return how often anything had changed when the principal was last answered, None where nobody knows."""
        return self._changes.get(principal)

    def note(self, principal: Principal, epoch: Epoch) -> None:
        """Note the epoch in which a principal is answered."""
        self._changes[principal] = epoch.changes
        self._changes.move_to_end(principal)
        if len(self._changes) > self._max_principals:
            self._changes.popitem(last=False)

    def keep(self, question: Question, searched: Searched, epoch: Epoch, now: datetime) -> None:
        """Keep what a whole search found, in an epoch that began before the search and had not ended after it."""
        if searched.degraded or searched.backend != INDEX_BACKEND:
            return
        self.drop(question)
        self._kept[question] = Kept(searched=searched, epoch=epoch, since=now)
        self._candidates += _size(searched)
        while self._candidates > self._max_candidates:
            self.drop(next(iter(self._kept)))

    def drop(self, question: Question) -> None:
        """Forget a question."""
        kept = self._kept.pop(question, None)
        if kept is not None:
            self._candidates -= _size(kept.searched)


def _size(searched: Searched) -> int:
    return 1 + len(searched.candidates.found)
