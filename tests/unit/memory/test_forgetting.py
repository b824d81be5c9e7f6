"""What a deletion reaches, as small graphs: `s` is a summary of `a b c`, `f` a fact that names its source."""

import pytest

from caisson.memory.domain.forgetting import plan

SUMMARY = [("s", "a"), ("s", "b"), ("s", "c")]
CASES = [
    ("a", [], "s", "a", {}, "", "alone"),
    ("a", SUMMARY, "s", "a", {"s": ("b", "c")}, "", "the summary is made from the others"),
    ("a", SUMMARY[:2], "s", "a s", {}, "b", "one source left is no summary; it is woken"),
    ("s", SUMMARY, "s", "s a b c", {}, "", "sources that nobody else uses go with it"),
    ("s", [*SUMMARY, ("f", "a")], "s", "s b c", {}, "", "a source that a fact uses stays"),
    ("a", [("f", "a")], "", "a f", {}, "", "what cannot be made again is dropped"),
    (
        "a",
        [*SUMMARY, ("t", "s"), ("t", "x")],
        "s t",
        "a",
        {"s": ("b", "c"), "t": ("s", "x")},
        "",
        "summaries of summaries",
    ),
    ("a", [*SUMMARY, ("f", "s")], "s", "a f", {"s": ("b", "c")}, "", "a fact from a changed summary goes"),
    ("m", [("m", "x"), ("d", "m"), ("d", "x")], "", "m d x", {}, "", "a source used only by what goes, goes"),
    ("f", [("f", "p")], "", "f", {}, "p", "a source that stands for itself stays, awake"),
    ("a b", SUMMARY, "s", "a b s", {}, "c", "several at once"),
]


@pytest.mark.parametrize(("asked", "edges", "summaries", "gone", "rebuilt", "woken", "why"), CASES)
def test_nothing_that_remains_was_made_from_what_goes(
    asked: str,
    edges: list[tuple[str, str]],
    summaries: str,
    gone: str,
    rebuilt: dict[str, tuple[str, ...]],
    woken: str,
    why: str,
) -> None:
    found = plan(asked.split(), edges, summaries=summaries.split(), material=set("abcx"))
    assert found.delete == set(gone.split()), why
    assert found.rebuild == rebuilt, why
    assert list(found.rebuild) == list(rebuilt), "sources first"
    assert found.wake == set(woken.split()), why
