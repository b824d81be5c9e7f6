"""Texts that become requests: the words of request tools, what is piped into them, and URLs in programs.

Invariant: a text that is only shown, searched or stored is none of these.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from caisson.runner.domain.guards.commands import SENDERS, programs_in, unwrapped
from caisson.runner.domain.guards.script import Command, Script
from caisson.runner.domain.guards.words import Word

_FEEDERS: Final = frozenset({"echo", "printf", "cat", "jq", "tee"})
_PROGRAM_FILE: Final = re.compile(r"\.(?:py|js|mjs|cjs|ts|rb|pl|php|http|rest)$")


class Origin(Enum):
    """Where a text comes from: it decides which forms of a parameter are looked for."""

    ARGUMENT = auto()
    BODY = auto()
    PROGRAM = auto()
    FILE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One possible text of a word."""

    origin: Origin
    text: str
    word: Word


def request_texts(script: Script) -> Iterator[Text]:
    """Yield every text of a script that goes into a request."""
    sends = any(inner.name in SENDERS for command in script.commands for inner in unwrapped(command))
    for command in script.commands:
        for inner in unwrapped(command):
            yield from _of_command(inner, calls_sender=sends and inner.name in script.functions)
        if _PROGRAM_FILE.search(" ".join(file.text for file in command.flow.files)):
            yield from _texts(Origin.FILE, command.flow.texts)


def _of_command(command: Command, *, calls_sender: bool) -> Iterator[Text]:
    if command.name in SENDERS or calls_sender:
        yield from _texts(Origin.ARGUMENT, command.arguments)
        yield from _texts(Origin.BODY, command.flow.texts)
        for feeder in command.flow.commands:
            if feeder.name in _FEEDERS:
                yield from _texts(Origin.BODY, feeder.arguments)
    yield from _texts(Origin.PROGRAM, programs_in(command))


def _texts(origin: Origin, words: "Iterator[Word] | tuple[Word, ...] | list[Word]") -> Iterator[Text]:
    for word in words:
        for text in word.texts:
            yield Text(origin=origin, text=text, word=word)


def pieces(text: Text) -> tuple[str, ...]:
    """Return the parts of an argument that may be a value: all of it, what follows `--option=`, what follows `-x`."""
    whole = text.text
    if text.origin is not Origin.ARGUMENT or not whole.startswith("-"):
        return (whole,)
    if whole.startswith("--"):
        return (whole.partition("=")[2],)
    return (whole[2:],)


def urls_in(text: Text, api_host: str) -> Iterator[str]:
    """Yield the URLs of a text: absolute ones, and in arguments also what follows an address that is not known."""
    for found in re.finditer(r"https?://[^\s\"'<>|\\]{1,2048}", text.text):
        yield found[0]
    if text.origin is Origin.ARGUMENT:
        for piece in pieces(text):
            if "/" in piece and not piece.startswith(("{", "@", "http")) and api_host not in piece:
                yield piece
