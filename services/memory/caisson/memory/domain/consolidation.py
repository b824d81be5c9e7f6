"""Several related episodes become one semantic memory that lists its sources. The sources go cold, never away.

Invariant: a group never mixes owners or scopes; its summary says all that its sources said and nothing else.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from caisson.memory.domain.clustering import cluster
from caisson.memory.domain.hashing import normalise
from caisson.memory.domain.indexing import Vector
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.near import Same, decide

MIN_EPISODES = 3
MAX_EPISODES = 12
RELATED_FROM = 0.45
"""Cosine to the centre of a group from which an episode belongs to it."""

MAX_EPISODE_CHARS = 1_000
"""A longer episode stays as it is: its summary would have to leave something out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Episodes of one owner and one set of scopes that become one memory, oldest first."""

    episodes: tuple[Memory, ...]
    text: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its episodes."""
        return tuple(episode.memory_id for episode in self.episodes)

    @property
    def owner_scope(self) -> str:
        """Whose all of them are."""
        return self.episodes[0].owner_scope

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that all of them have."""
        return self.episodes[0].scopes

    @property
    def subject(self) -> str | None:
        """The subject that all of them share."""
        return _shared(episode.subject for episode in self.episodes)

    @property
    def attribute(self) -> str | None:
        """The attribute that all of them share, if they share the subject."""
        return _shared(episode.attribute for episode in self.episodes) if self.subject is not None else None

    @property
    def expires_at(self) -> datetime | None:
        """The first end among the sources: a summary does not outlive what it was made from."""
        ends = [episode.expires_at for episode in self.episodes if episode.expires_at is not None]
        return min(ends, default=None)

    @property
    def importance(self) -> float:
        """The highest among them."""
        return max(episode.importance for episode in self.episodes)

    @property
    def confidence(self) -> float:
        """The mean of theirs."""
        return sum(episode.confidence for episode in self.episodes) / len(self.episodes)


def group_episodes(episodes: Sequence[Memory], vectors: Sequence[Vector] | None) -> list[Group]:
    """Group episodes by subject where they have one, and by meaning otherwise.

    Args:
        episodes: active ones, in any order.
        vectors: one per episode; None where no embedder answers, and then only subjects group.
    """
    places: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for position, episode in enumerate(episodes):
        if len(episode.text) <= MAX_EPISODE_CHARS:
            places[episode.owner_scope, episode.scopes].append(position)
    groups = []
    for positions in places.values():
        for found in _related(positions, episodes, vectors):
            if len(found) >= MIN_EPISODES:
                oldest_first = sorted(found, key=lambda at: (episodes[at].created_at, episodes[at].memory_id))
                chosen = tuple(episodes[at] for at in oldest_first)
                groups.append(Group(episodes=chosen, text=summarise([said(episode) for episode in chosen])))
    return groups


def said(episode: Memory) -> str:
    """Return what an episode says, with its outcome where the text leaves that out."""
    outcome = episode.outcome
    if outcome is None or re.search(rf"\b{re.escape(normalise(outcome))}\b", normalise(episode.text)):
        return episode.text
    return f"{episode.text} ({outcome})"


def summarise(statements: Iterable[str]) -> str:
    """Return the statements, one a line, without those that repeat another. Extractive: nothing is reworded."""
    kept: list[str] = []
    for statement in statements:
        line = " ".join(statement.split())
        if not any(isinstance(decide(line, other), Same) for other in kept):
            kept.append(line)
    return "\n".join(kept)


def _related(
    positions: list[int], episodes: Sequence[Memory], vectors: Sequence[Vector] | None
) -> Iterable[list[int]]:
    by_subject: dict[str, list[int]] = defaultdict(list)
    loose = []
    for position in positions:
        subject = episodes[position].subject
        if subject is None:
            loose.append(position)
        else:
            by_subject[normalise(subject)].append(position)
    for found in by_subject.values():
        yield from _evenly(found)
    if vectors is not None:
        chosen = [vectors[position] for position in loose]
        for group in cluster(chosen, threshold=RELATED_FROM, largest=len(loose)):
            yield from _evenly([loose[at] for at in group])


def _evenly(positions: list[int]) -> Iterable[list[int]]:
    """Cut a large group into parts of nearly the same size, so that none is left too small."""
    parts = -(-len(positions) // MAX_EPISODES)
    bounds = [round(len(positions) * part / parts) for part in range(parts + 1)]
    return (positions[start:end] for start, end in pairwise(bounds))


def _shared(values: Iterable[str | None]) -> str | None:
    listed = list(values)
    first = listed[0]
    if first is None or any(value is None or normalise(value) != normalise(first) for value in listed):
        return None
    return first
