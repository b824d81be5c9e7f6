"""A script as the guards see it: commands, changes of variables, and what is fed to whom, in textual order."""

from dataclasses import dataclass, field

from caisson.runner.domain.guards.words import Word


@dataclass(slots=True, kw_only=True)
class Flow:
    """Commands joined by pipes and redirections: any of them may read the texts, and write the files."""

    commands: list["Command"] = field(default_factory=list)
    texts: list[Word] = field(default_factory=list)
    files: list[Word] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command. `name` is without its folder, and empty where it is not known."""

    name: str
    arguments: tuple[Word, ...]
    flow: Flow
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A variable that the script sets or takes away. `value` is None where it is taken away or not known."""

    name: str
    value: Word | None
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One parsed script. `complete` is false where the parser met something that it does not know."""

    text: str
    commands: list[Command]
    changes: list[Change]
    loose_words: list[Word]
    functions: set[str]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What a guard found, and where in which text."""

    guard: str
    reason: str
    text: str
    start: int
    end: int
