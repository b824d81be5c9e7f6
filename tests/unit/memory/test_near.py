"""Which near texts are the same: the cosine says yes to every pair here."""

import pytest

from caisson.memory.domain.near import Different, Same, decide

DIFFERENT = [
    ("The deadline is 15 Oct", "The deadline is 16 Oct", "numbers"),
    ("port 8080", "port 8081", "numbers"),
    ("likes olives", "does not like olives", "negation"),
    ("She can't deploy", "She can deploy", "negation"),
    ("Alice manages Bob", "Bob manages Alice", "names"),
    ("The team lead is Ana", "The team lead is Bo", "names"),
    ("region is us-east", "region is us-west", "words"),
    ("was a manager", "is a manager", "words"),
    ("prefers C", "prefers C#", "signs"),
    ("it is 5 degrees", "it is -5 degrees", "signs"),
    ("a > b", "a < b", "signs"),
    ("owes $50", "owes €50", "signs"),
    ("the share is 5", "the share is 5%", "signs"),
    ("likes 🍕", "likes 🍣", "signs"),
    ("reads ../../etc/passwd", "reads /etc/passwd", "signs"),
    ("reads ./notes", "reads ../notes", "signs"),
    ("likes tea", "likes green tea", "words"),
    ("prefers tea", "preferred drink is tea", "words"),
    ("the meeting is before lunch", "the meeting is after lunch", "words"),
]
SAME = [
    ("The deploy port is 8080", "deploy port is 8080."),
    ("Prefers dark mode", "prefers the dark mode"),
    ("They like tea", "they likes tea"),
    ("Prefers: tea (green), no sugar…", "prefers tea – green; no sugar."),
    ("“It's closed”, she said", "It's closed, she said"),
    ("Café is closed on Monday", "café is closed on Monday!"),
]


@pytest.mark.parametrize(("new", "stored", "because"), DIFFERENT)
def test_what_differs_in_meaning_is_two_memories(new: str, stored: str, because: str) -> None:
    assert decide(new, stored) == Different(because=because)
    assert isinstance(decide(stored, new), Different)


@pytest.mark.parametrize(("new", "stored"), SAME)
def test_what_differs_in_spelling_only_is_one(new: str, stored: str) -> None:
    assert decide(new, stored) == Same()
