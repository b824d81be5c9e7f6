"""What a command really runs: wrappers taken off, and the scripts and programs that it carries in its words."""

import re
from collections.abc import Iterator
from typing import Final

from caisson.runner.domain.guards.script import Command
from caisson.runner.domain.guards.words import Word

SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})
SENDERS: Final = frozenset({"curl", "wget", "http", "https", "xh", "xhs", "curlie", "httpie", "aria2c", "nc", "ncat"})
LANGUAGES: Final = frozenset({"python", "node", "ruby", "perl", "php", "deno", "bun", "pypy", "ipython"})
DECLARERS: Final = frozenset({"export", "declare", "typeset", "readonly", "local"})
READERS: Final = frozenset({"read", "mapfile", "readarray", "getopts"})

_WRAPPERS: Final = frozenset(
    {
        "env", "command", "builtin", "exec", "nohup", "time", "nice", "ionice", "chrt", "setsid", "stdbuf",
        "timeout", "xargs", "sudo", "doas", "busybox", "unbuffer", "chronic", "watch", "parallel", "strace",
        "ltrace", "eatmydata", "setarch", "taskset", "flock", "script",
    }
)  # fmt: skip
_SOURCING: Final = frozenset({"source", "."})
_INTERESTING: Final = (
    SHELLS | SENDERS | LANGUAGES | DECLARERS | READERS | _WRAPPERS | _SOURCING | {"eval", "unset", "printf", "let"}
)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_NUMBERED: Final = re.compile(r"\d[\w.]*|\{\}|%|;|\+")
_VERSION: Final = re.compile(r"[\d.]+$")
_SEARCHED_WORDS: Final = 12
_MAX_LAYERS: Final = 6


def language_of(command: Command) -> str:
    """Return the command's name without a version, so that `python3.11` is `python`."""
    return _VERSION.sub("", command.name)


def unwrapped(command: Command) -> Iterator[Command]:
    """Yield the command and, for a wrapper, what it runs; `find -exec` counts as one."""
    yield command
    for _ in range(_MAX_LAYERS):
        inner = _wrapped(command)
        if inner is None:
            return
        yield inner
        command = inner


def _wrapped(command: Command) -> Command | None:
    words = command.arguments
    if command.name == "find":
        for place, word in enumerate(words):
            if word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
                return _from(command, words[place + 1 :])
        return None
    if command.name not in _WRAPPERS:
        return None
    for place, word in enumerate(words[:_SEARCHED_WORDS]):
        if _base(word) in _INTERESTING:
            return _from(command, words[place:])
    for place, word in enumerate(words[:_SEARCHED_WORDS]):
        if not (word.text.startswith("-") or _ASSIGNMENT.match(word.text) or _NUMBERED.fullmatch(word.text)):
            return _from(command, words[place:])
    return None


def _from(command: Command, words: tuple[Word, ...]) -> Command | None:
    if not words:
        return None
    return Command(
        name=_base(words[0]), arguments=words[1:], flow=command.flow, start=words[0].start, end=command.end
    )


def _base(word: Word) -> str:
    return word.text.rpartition("/")[2]


def assignments(command: Command) -> Iterator[tuple[str, Word]]:
    """Yield the `NAME=value` words of a command, each with its value as a word."""
    for word in command.arguments:
        if found := _ASSIGNMENT.fullmatch(word.text):
            yield found[1], Word(texts=(found[2],), start=word.start, end=word.end)


def scripts_in(command: Command) -> Iterator[Word]:
    """Yield the shell scripts that a command carries, feeds to a shell, or writes into a script file."""
    words = command.arguments
    if command.name == "eval":
        if words:
            joined = " ".join(word.text for word in words)
            yield Word(texts=(joined,), start=words[0].start, end=words[-1].end)
    elif command.name == "trap":
        yield from words[:1]
    elif command.name == "env":
        yield from _after_option(words, "S", "--split-string")
    elif command.name in SHELLS:
        given = list(_after_option(words, "c", "--command"))
        yield from given or command.flow.texts
    elif command.name in _SOURCING or _writes_script(command):
        yield from command.flow.texts


def _writes_script(command: Command) -> bool:
    return any(file.text.endswith((".sh", ".bash")) for file in command.flow.files)


def programs_in(command: Command) -> Iterator[Word]:
    """Yield the programs of other languages that a command carries: `python -c`, `node -e`, and what they read."""
    language = language_of(command)
    if language not in LANGUAGES or (language in {"perl", "ruby"} and _filters_lines(command)):
        return
    option = "c" if language in {"python", "pypy", "ipython"} else "r" if language == "php" else "e"
    given = list(_after_option(command.arguments, option, "--eval"))
    yield from given or command.flow.texts


def _filters_lines(command: Command) -> bool:
    """With `-n` or `-p` a program edits the lines that it is given: it is a pattern, as sed's is."""
    return any(re.match(r"-[a-z0-9]*[np]", word.text) for word in command.arguments[:_SEARCHED_WORDS])


def _after_option(words: tuple[Word, ...], letter: str, long: str) -> Iterator[Word]:
    """Yield the word after `-x` (also at the end of a cluster such as `-ex`) or `--long`."""
    for place, word in enumerate(words[:_SEARCHED_WORDS]):
        text = word.text
        short = text.startswith("-") and not text.startswith("--") and text.endswith(letter)
        if (short or text == long) and place + 1 < len(words):
            yield words[place + 1]
            return
