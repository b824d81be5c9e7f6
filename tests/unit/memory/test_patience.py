"""A part that hangs is waited for once; who asks later goes on without it until it answers again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from caisson.common.errors import InvalidInput, Unavailable
from caisson.memory.domain.patience import Patience

BRIEF_S, AMPLE_S = 0.02, 60.0


class Part:
    """Answers question by question, when the test says so."""

    def __init__(self) -> None:
        self.questions: list[asyncio.Future[str]] = []
        self.now = 0.0

    async def __call__(self) -> str:
        question: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        return await question

    def clock(self) -> float:
        return self.now


@pytest.fixture
async def part() -> AsyncIterator[Part]:
    part = Part()
    yield part
    for question in part.questions:
        question.cancel()
    await asyncio.sleep(0)


async def refused(answer: Awaitable[object]) -> None:
    with pytest.raises(Unavailable, match="no answer in"):
        await answer


async def silent(part: Part) -> Patience:
    """Return what has waited in vain once."""
    patience = Patience(BRIEF_S, clock=part.clock)
    await refused(patience.answer(part))
    return patience


async def asked(part: Part, count: int) -> asyncio.Future[str]:
    """Return the question of that number once it has come."""
    while len(part.questions) < count:
        await asyncio.sleep(0)
    return part.questions[count - 1]


async def test_after_the_first_late_answer_nobody_asks_and_nobody_waits(part: Part) -> None:
    patience = await silent(part)
    for _ in range(1_000):
        await refused(patience.answer(part))
    assert len(part.questions) == 1


ENDINGS: list[tuple[Callable[[asyncio.Future[str]], object], str]] = [
    (lambda question: question.set_result("late"), "the late answer arrives"),
    (lambda question: question.set_exception(InvalidInput("no", field="text")), "a refusal is an answer"),
]


@pytest.mark.parametrize(("end", "why"), ENDINGS, ids=[why for _, why in ENDINGS])
async def test_an_answer_however_late_ends_the_silence(
    part: Part, end: Callable[[asyncio.Future[str]], object], why: str
) -> None:
    patience = await silent(part)
    end(part.questions[0])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(patience.answer(part)) for _ in range(2)]
    await asked(part, 3)
    for question in part.questions[1:]:
        question.set_result("back")
    assert await asyncio.gather(*waiting) == ["back", "back"], "both ask at once"


async def test_once_the_late_question_failed_one_caller_asks_for_all_and_gets_its_answer(part: Part) -> None:
    patience = await silent(part)
    part.questions[0].set_exception(Unavailable("killed"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    probing = asyncio.create_task(patience.answer(part))
    question = await asked(part, 2)
    await refused(patience.answer(part))
    assert len(part.questions) == 2, "while one asks, the others go on without"
    question.set_result("back")
    assert await probing == "back"
    following = asyncio.create_task(patience.answer(part))
    (await asked(part, 3)).set_result("well")
    assert await following == "well"


async def test_a_question_that_is_never_answered_is_followed_by_another_after_a_while(part: Part) -> None:
    patience = await silent(part)
    part.now = 7.9
    await refused(patience.answer(part))
    assert len(part.questions) == 1
    part.now = 8.0
    await refused(patience.answer(part))
    await refused(patience.answer(part))
    assert len(part.questions) == 2


async def test_whoever_waits_when_the_part_falls_silent_waits_no_longer(part: Part) -> None:
    patience = Patience(AMPLE_S, clock=part.clock)
    waiting = [asyncio.create_task(patience.answer(part)) for _ in range(3)]
    (await asked(part, 3)).set_exception(Unavailable("no answer in the part's own time"))
    part.now = 1.0
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["no answer in 60 s"] * 2 + ["no answer in the part's own time"]


async def test_a_failure_at_once_is_no_silence(part: Part) -> None:
    patience = Patience(AMPLE_S, clock=part.clock)
    for number in (1, 2):
        failing = asyncio.create_task(patience.answer(part))
        (await asked(part, number)).set_exception(Unavailable("the index is away"))
        with pytest.raises(Unavailable, match="is away"):
            await failing
    waiting = [asyncio.create_task(patience.answer(part)) for _ in range(2)]
    await asked(part, 4)
    for question in part.questions[2:]:
        question.set_result("well")
    assert await asyncio.gather(*waiting) == ["well", "well"]


async def test_one_slow_question_among_others_that_are_answered_is_no_silence(part: Part) -> None:
    patience = Patience(BRIEF_S, clock=part.clock)
    slow = asyncio.create_task(patience.answer(part))
    await asked(part, 1)
    part.now = 1.0
    quick = asyncio.create_task(patience.answer(part))
    (await asked(part, 2)).set_result("well")
    assert await quick == "well"
    await refused(slow)
    following = asyncio.create_task(patience.answer(part))
    (await asked(part, 3)).set_result("well")
    assert await following == "well"
