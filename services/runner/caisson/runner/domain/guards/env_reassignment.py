"""The guard against giving a reserved variable another value.

Invariant: what leaves the value as it is (`export TENANT_ID`, `TENANT_ID="$TENANT_ID"`) is no violation.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from caisson.runner.domain.guards import raw_text
from caisson.runner.domain.guards.commands import DECLARERS, READERS, assignments, programs_in, unwrapped
from caisson.runner.domain.guards.decision import Trusted
from caisson.runner.domain.guards.script import Change, Command, Script, Violation
from caisson.runner.domain.guards.words import Word

GUARD: Final = "env_reassignment"
RESERVED: Final = ("TENANT_ID", "USER_ID", "RUN_ID", "REQUEST_ID", "API_HOST", "WORKSPACE", "DATASET_ID")

_ALTERNATIVES: Final = "|".join(RESERVED)
_NAMING_OPTIONS: Final = {"printf": ("-v",), "wait": ("-p",), "env": ("-u", "--unset")}
_LET: Final = re.compile(rf"({_ALTERNATIVES})(?:[-+*/%&|^]|<<|>>)?=(?!=)|({_ALTERNATIVES})(?:\+\+|--)")
_IN_PROGRAM: Final = re.compile(
    rf"(?:environ|\benv|\bENV)(?:\.|\[\s{{0,8}}[\"'])({_ALTERNATIVES})(?:[\"']\s{{0,8}}\])?\s{{0,8}}=(?![=~>])"
    rf"|putenv\(\s{{0,8}}[\"']({_ALTERNATIVES})"
)


def find(script: Script, trusted: Trusted) -> Violation | None:
    """Return the first change of a reserved variable."""
    for change in _changes(script):
        if change.name in RESERVED and not _keeps(change, trusted):
            return Violation(
                guard=GUARD, reason=_reason(change.name), text=script.text, start=change.start, end=change.end
            )
    return None


def find_raw(text: str, trusted: Trusted) -> Violation | None:
    """Return the first change of a reserved variable in unparsed text."""
    for name, value, start, end in raw_text.assignments(text):
        kept = value is not None and value.strip("\"'") in {trusted.environment.get(name), f"${name}", f"${{{name}}}"}
        if name in RESERVED and not kept:
            return raw_text.violation(GUARD, _reason(name), text, start, end)
    return None


def _changes(script: Script) -> Iterator[Change]:
    yield from script.changes
    for command in script.commands:
        for inner in unwrapped(command):
            yield from _of_command(inner)


def _of_command(command: Command) -> Iterator[Change]:
    words = command.arguments
    if command.name in READERS | {"unset", "coproc"}:
        yield from (_taken(word.text, word) for word in words)
    elif command.name in _NAMING_OPTIONS:
        yield from _named_by(words, *_NAMING_OPTIONS[command.name])
    elif command.name == "let":
        found = [(word, _LET.match(word.text)) for word in words]
        yield from (_taken(match[1] or match[2], word) for word, match in found if match)
    elif command.name == "exec":
        yield from (_taken(word.text[1:-1], word) for word in words if word.text[:1] + word.text[-1:] == "{}")
    if command.name in DECLARERS | {"env"}:
        yield from _set(command)
    if command.name in DECLARERS and any(word.text == "-n" for word in words):
        yield from (_taken(word.text, word) for word in words)
    for program in programs_in(command):
        yield from (_taken(found[1] or found[2], program) for found in _IN_PROGRAM.finditer(program.text))


def _set(command: Command) -> Iterator[Change]:
    refers = any(word.text.startswith("-") and "n" in word.text for word in command.arguments[:1])
    for name, value in assignments(command):
        yield Change(name=name, value=value, start=value.start, end=value.end)
        if command.name in DECLARERS and refers:
            yield _taken(value.text, value)


def _named_by(words: tuple[Word, ...], short: str, long: str = "") -> Iterator[Change]:
    for word, following in zip_longest(words, words[1:]):
        if word.text in {short, long} and following is not None:
            yield _taken(following.text, following)
        elif word.text.startswith(short) and word.text != short:
            yield _taken(word.text[len(short) :], word)
        elif long and word.text.startswith(f"{long}="):
            yield _taken(word.text[len(long) + 1 :], word)


def _taken(name: str, word: Word) -> Change:
    return Change(name=name.partition("[")[0], value=None, start=word.start, end=word.end)


def _keeps(change: Change, trusted: Trusted) -> bool:
    if change.value is None:
        return False
    allowed = {trusted.environment.get(change.name)}
    if change.name == "DATASET_ID":
        allowed |= set(trusted.datasets)
    return set(change.value.texts) <= allowed


def _reason(name: str) -> str:
    return (
        f"{name} is given to this run and cannot be changed: use ${name} as it is, and other names for other values."
    )
