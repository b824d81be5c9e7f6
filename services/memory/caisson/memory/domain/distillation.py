"""Many candidates to few: reword, merge what says the same, group by topic, choose evenly, polish. Pure steps.

Invariant: every candidate that goes is counted in the report of the stage that dropped it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from caisson.memory.domain.clustering import cluster
from caisson.memory.domain.indexing import Vector
from caisson.memory.domain.near import fingerprint
from caisson.memory.domain.principals import Principal

SAME_TOPIC_FROM = 0.55
"""Cosine to the centre of a topic from which a candidate belongs to it."""


class Stage(StrEnum):
    """The stages in their order; the first and the last need a model."""

    SYNTHESISE = "synthesise"
    MERGE = "lexical_merge"
    CLUSTER = "semantic_clustering"
    SELECT = "topic_balanced_selection"
    REFINE = "refine"


STAGES = tuple(Stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One candidate as far as it has come. `weight` counts the candidates that said the same."""

    position: int
    text: str
    weight: int
    vector: Vector | None
    topic: int | None
    selected: bool


class Candidates(Protocol):
    """The texts of an unfinished distillation."""

    async def add(self, job_id: str, principal: Principal, texts: Sequence[str]) -> None:
        """Keep the candidates of a new job."""

    async def read(self, job_id: str) -> list[Text]:
        """Return the candidates that are left, in their order."""

    async def drop(self, job_id: str, positions: Sequence[int]) -> None:
        """Drop candidates."""

    async def weigh(self, job_id: str, weights: Mapping[int, int]) -> None:
        """Keep how many candidates each stands for."""

    async def embed(self, job_id: str, vectors: Mapping[int, Vector]) -> None:
        """Keep vectors by position."""

    async def sort(self, job_id: str, topics: Mapping[int, int]) -> None:
        """Keep topics by position."""

    async def select(self, job_id: str, positions: Sequence[int]) -> None:
        """Mark the selection."""

    async def reword(self, job_id: str, principal: Principal, texts: Mapping[int, str]) -> None:
        """Replace texts by position."""


class Chat(Protocol):
    """A model behind an OpenAI-compatible endpoint."""

    async def reword(self, instruction: str, texts: Sequence[str]) -> list[str | None]:
        """Return one text per text, None where the model drops it; raise Unavailable without a usable answer."""


def merge(texts: Sequence[Text]) -> dict[int, int]:
    """Return the weight of each candidate that stays: of those that say the same, the first stands for all."""
    first: dict[Any, int] = {}
    weights: dict[int, int] = defaultdict(int)
    for text in texts:
        position = first.setdefault(fingerprint(text.text), text.position)
        weights[position] += text.weight
    return dict(weights)


def sort_by_topic(texts: Sequence[Text]) -> dict[int, int]:
    """Return the topic of each candidate that has a vector; the others are topics of their own."""
    embedded = [text for text in texts if text.vector is not None]
    groups = cluster(
        [text.vector for text in embedded if text.vector is not None], threshold=SAME_TOPIC_FROM, largest=len(texts)
    )
    topics = {embedded[at].position: topic for topic, group in enumerate(groups) for at in group}
    loose = [text.position for text in texts if text.position not in topics]
    return topics | {position: len(groups) + number for number, position in enumerate(loose)}


def choose(texts: Sequence[Text], target: int) -> list[int]:
    """Return at most `target` positions: one from each topic in turn, heavy topics and central candidates first."""
    topics: dict[int, list[Text]] = defaultdict(list)
    for text in texts:
        topics[text.topic if text.topic is not None else -1].append(text)
    ranked = [_central_first(members) for members in topics.values()]
    ranked.sort(key=lambda members: (-sum(text.weight for text in members), members[0].position))
    rounds = max((len(members) for members in ranked), default=0)
    in_turn = [members[turn] for turn in range(rounds) for members in ranked if turn < len(members)]
    return [text.position for text in in_turn[:target]]


def _central_first(members: list[Text]) -> list[Text]:
    vectors = [text.vector for text in members if text.vector is not None]
    centre = np.sum(np.asarray(vectors, dtype=np.float32), axis=0) if vectors else None

    def rank(text: Text) -> tuple[int, float, int]:
        nearness = 0.0
        if centre is not None and text.vector is not None:
            nearness = float(np.dot(centre, np.asarray(text.vector, dtype=np.float32)))
        return (-text.weight, -nearness, text.position)

    return sorted(members, key=rank)
