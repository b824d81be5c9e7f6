"""The guard against paths that lead to other workspaces, other processes, or the runner's own files.

Invariant: a word that is a text, a pattern or a program for its command is not a path.
"""

import re
from collections.abc import Iterator
from typing import Final

from caisson.runner.domain.guards import raw_text
from caisson.runner.domain.guards.commands import LANGUAGES, SHELLS, language_of, programs_in, unwrapped
from caisson.runner.domain.guards.decision import Trusted
from caisson.runner.domain.guards.paths import HIDDEN, leads_away, resolve
from caisson.runner.domain.guards.script import Command, Script, Violation
from caisson.runner.domain.guards.words import UNKNOWN, Word
from caisson.runner.domain.layout import WORKSPACE

GUARD: Final = "workspace_escape"
_TEXTUAL: Final = frozenset({"echo", "printf", "expr", "test", "logger", "tr", "basename", "dirname", "gh", "alias"})
_PATTERN_FIRST: Final = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "jq", "yq"}
)
_TEXT_OPTIONS: Final = frozenset(
    {
        "-e", "--expression", "--regexp", "-m", "-am", "--message", "-path", "-ipath", "-wholename", "-name",
        "-iname", "-regex", "--exclude", "--include", "-A", "-H", "-d", "--data", "--header",
    }
)  # fmt: skip
_PROGRAM_OPTIONS: Final = frozenset({"-c", "-e", "--eval", "-r"})
_IN_PROGRAM: Final = re.compile(
    r"[\"'](/proc/\d{1,10}(?:/[\w.*-]{0,64}){0,4}|(?:"
    + "|".join(map(re.escape, HIDDEN))
    + r")(?:/[^\"'\s]{0,256})?)[\"']"
)
_RAW: Final = re.compile(
    r"(?:^|[\s\"'=@:(<>])(/proc/\d{1,10}(?:/[\w.*-]{0,64}){0,4}|(?:"
    + "|".join(map(re.escape, HIDDEN))
    + r")(?=[/\s\"';)]|$)[^\s\"';)]{0,256})"
)
_PROGRAMMABLE: Final = LANGUAGES | SHELLS
_CLUSTERED: Final = re.compile(r"-[A-Za-z](?=[./~])")
_MAX_SPACES: Final = 3


def find(script: Script, trusted: Trusted) -> Violation | None:
    """Return the first path of a script that leads away."""
    for word, path, base in _paths(script):
        if target := leads_away(path, base=base, hidden=trusted.hidden):
            return Violation(guard=GUARD, reason=_reason(target), text=script.text, start=word.start, end=word.end)
    return None


def find_raw(text: str, trusted: Trusted) -> Violation | None:
    """Return the first absolute path of unparsed text that leads away."""
    for found in _RAW.finditer(text):
        if target := leads_away(found[1], base=None, hidden=trusted.hidden):
            return raw_text.violation(GUARD, _reason(target), text, found.start(1), found.end(1))
    return None


def _paths(script: Script) -> Iterator[tuple[Word, str, str | None]]:
    """Yield every word that may be a path, one candidate at a time, with the directory it is seen from."""
    base: str | None = WORKSPACE
    for command in script.commands:
        here = None if any(word.text in {"-C", "--directory"} for word in command.arguments) else base
        for inner in unwrapped(command):
            for word in _operands(inner):
                yield from _candidates(word, _link_base(inner, word, here))
            for program in programs_in(inner):
                yield from ((program, found[1], None) for found in _IN_PROGRAM.finditer(program.text))
        base = _moved(command, base)
    for word in script.loose_words:
        yield from _candidates(word, base if base == WORKSPACE else None)


def _operands(command: Command) -> Iterator[Word]:
    """Yield the words that are neither texts nor patterns nor programs."""
    if command.name in _TEXTUAL:
        return
    takes_text = _TEXT_OPTIONS | (_PROGRAM_OPTIONS if language_of(command) in _PROGRAMMABLE else frozenset())
    pattern_first = command.name in _PATTERN_FIRST
    previous = ""
    for word in command.arguments:
        is_text = previous in takes_text
        is_pattern = pattern_first and not is_text and not word.text.startswith("-")
        previous = word.text
        if is_text or is_pattern:
            pattern_first = False
        else:
            yield word


def _candidates(word: Word, base: str | None) -> Iterator[tuple[Word, str, str | None]]:
    for text in word.texts:
        if not _may_be_path(text):
            continue
        path = _CLUSTERED.sub("", text, count=1) if text.startswith("-") else text
        yield word, path, base
        for separator in ("=", "@", ":"):
            yield from ((word, part, base) for part in path.split(separator)[1:] if "/" in part)


def _may_be_path(text: str) -> bool:
    if text.startswith(("--exclude", "--include")):
        return False
    if "\n" in text or text.count(" ") > _MAX_SPACES or ("://" in text and "file://" not in text):
        return False
    return " " not in text or text.startswith(("/", "./", "../", "~"))


def _link_base(command: Command, word: Word, base: str | None) -> str | None:
    """A symbolic link's target is seen from the link's own folder."""
    if command.name != "ln" or word is command.arguments[-1]:
        return base
    link = resolve(command.arguments[-1].text, base)
    return None if link is None else link.rpartition("/")[0] or "/"


def _moved(command: Command, base: str | None) -> str | None:
    """Return the working directory after a command."""
    if command.name not in {"cd", "pushd", "popd"}:
        return base
    words = [word.text for word in command.arguments if not word.text.startswith("-") or word.text == "-"]
    if command.name == "popd" or words[:1] == ["-"]:
        return None
    return resolve(words[0], base) if words else WORKSPACE


def _reason(target: str) -> str:
    shown = target.replace(UNKNOWN, "…")[:120]
    return f"The path leads to {shown}, outside of this run: work inside $WORKSPACE with paths relative to it."
