"""A question set: what several tenants remember, and questions with the memories that answer them, or none.

Invariant: the two halves share no question; thresholds are found on one and judged on the other.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field, ValidationError

from caisson.common.errors import InvalidInput
from caisson.common.memories import LayerName
from caisson.common.messages import Message
from caisson.common.moments import Moment

ABSTENTION = "abstention"
CROSS_TENANT = "cross-tenant trap"


class Remembered(Message):
    """One memory of the set; `user` is whose own it is where its scopes say so."""

    id: str
    tenant: str
    user: str
    scopes: list[str] = Field(min_length=1)
    text: str = Field(min_length=1)
    layer: LayerName = "semantic"
    valid_from: Moment
    valid_to: Moment | None = None


class Question(Message):
    """One question of a user, who was granted `scopes`; without relevant memories, silence is the right answer."""

    id: str
    slice: str
    tenant: str
    user: str
    scopes: list[str] = []
    text: str = Field(min_length=1)
    relevant: list[str]
    as_of: Moment | None = None


class _File(Message):
    name: str
    seed: int | None = None
    memories: list[Remembered] = Field(min_length=1)
    questions: list[Question] = Field(min_length=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """A whole set and the digest that names it."""

    name: str
    memories: Sequence[Remembered]
    questions: Sequence[Question]
    digest: str

    def halves(self) -> tuple[list[Question], list[Question]]:
        """Return the half to calibrate on and the half to judge on, each with half of every slice."""
        slices: dict[str, list[Question]] = defaultdict(list)
        for question in sorted(self.questions, key=lambda question: _shuffled(question.id)):
            slices[question.slice].append(question)
        calibration, held_out = [], []
        for questions in slices.values():
            middle = (len(questions) + 1) // 2
            calibration += questions[:middle]
            held_out += questions[middle:]
        return calibration, held_out


def read_set(data: bytes) -> QuestionSet:
    """Read a set from JSON.

    Raises:
        InvalidInput: naming the fields that are wrong, or ids that are repeated or unknown.
    """
    try:
        file = _File.model_validate_json(data)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5])
        raise InvalidInput(f"the question set is not readable: {told}", field="set") from error
    known = [memory.id for memory in file.memories]
    ids = [question.id for question in file.questions]
    if len(set(known)) < len(known) or len(set(ids)) < len(ids):
        raise InvalidInput("the question set uses an id twice", field="set")
    unknown = {memory_id for question in file.questions for memory_id in question.relevant} - set(known)
    if unknown:
        raise InvalidInput(f"the question set refers to unknown memories: {sorted(unknown)[:5]}", field="set")
    return QuestionSet(
        name=file.name,
        memories=tuple(file.memories),
        questions=tuple(file.questions),
        digest=hashlib.sha256(data).hexdigest(),
    )


def _shuffled(question_id: str) -> bytes:
    return hashlib.sha256(question_id.encode()).digest()
