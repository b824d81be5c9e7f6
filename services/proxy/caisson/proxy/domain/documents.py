"""The tenant in a JSON body, byte-exact.

Invariant: after a rewrite exactly one member leads to the place and it holds the trusted value; duplicates and other
spellings of its keys are gone, and every byte outside them is what the client sent.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found, JsonPlace
from caisson.proxy.domain.spelling import fold

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_SPACE = re.compile(r"[ \t\n\r]*")
_KEY = re.compile(_STRING)
_NESTING = re.compile(_STRING + r"|[\[\]{}]")
_SCALAR = re.compile(_STRING + r"|[^,\]} \t\n\r]+")


class Unrewritable(ValueError):
    """The body is not one JSON object in UTF-8; the message says what it is instead, without quoting it."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of an object: its key, where the key begins, and where its value stands."""

    key: str
    begins: int
    value: int
    ends: int


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace the text between two positions."""

    begins: int
    ends: int
    text: str


def rewrite_document(body: bytes, place: JsonPlace, trusted: str) -> tuple[bytes, Found]:
    """Write the trusted value at the place.

    Raises:
        Unrewritable: when the body is not a JSON object.
    """
    text, document = _parse(body)
    rewritten = _apply(text, _edit(text, text.index("{"), place.keys, trusted)).encode()
    values = list(_values(document, place.folded()))
    if not values:
        return rewritten, NOTHING
    foreign = any(value is not None and str(value) not in {"", trusted} for value in values)
    return rewritten, FOREIGN if foreign else TRUSTED


def _apply(text: str, edits: Iterator[_Edit]) -> str:
    """Apply edits that come in the order of the text."""
    written: list[str] = []
    position = 0
    for edit in edits:
        written += (text[position : edit.begins], edit.text)
        position = edit.ends
    return "".join((*written, text[position:]))


def _parse(body: bytes) -> tuple[str, Any]:
    try:
        text = body.decode()
        document = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except RecursionError:
        raise Unrewritable("it is nested too deeply") from None
    except ValueError:
        raise Unrewritable("it is not JSON in UTF-8") from None
    if not isinstance(document, _Pairs):
        raise Unrewritable("it is JSON, but not an object")
    return text, document


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in their order, duplicates included."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _values(document: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    if not keys:
        yield document
    elif isinstance(document, _Pairs):
        for key, value in document:
            if fold(key) == keys[0]:
                yield from _values(value, keys[1:])


def _edit(text: str, opening: int, keys: tuple[str, ...], trusted: str) -> Iterator[_Edit]:
    name, rest = keys[0], keys[1:]
    members = list(_members(text, opening))
    hits = [index for index, member in enumerate(members) if fold(member.key) == fold(name)]
    if not hits:
        comma = "," if members else ""
        yield _Edit(opening + 1, opening + 1, f"{json.dumps(name)}:{_nested(rest, trusted)}{comma}")
        return
    first = members[hits[0]]
    key_ends = _key_end(text, first)
    yield _Edit(first.begins, key_ends, json.dumps(name))
    if rest and text[first.value] == "{":
        yield from _edit(text, first.value, rest, trusted)
    else:
        yield _Edit(first.value, first.ends, _nested(rest, trusted))
    for index in hits[1:]:
        yield _Edit(members[index - 1].ends, members[index].ends, "")


def _nested(keys: tuple[str, ...], trusted: str) -> str:
    document: Any = trusted
    for key in reversed(keys):
        document = {key: document}
    return json.dumps(document, separators=(",", ":"))


def _members(text: str, opening: int) -> Iterator[_Member]:
    position = _skip_space(text, opening + 1)
    while text[position] == '"':
        begins = position
        position = _match(_KEY, text, position)
        key = text[begins + 1 : position - 1]
        key = json.loads(f'"{key}"') if "\\" in key else key
        value = _skip_space(text, _skip_space(text, position) + 1)
        ends = _value_end(text, value)
        yield _Member(key, begins, value, ends)
        position = _skip_space(text, ends)
        if text[position] == ",":
            position = _skip_space(text, position + 1)


def _value_end(text: str, position: int) -> int:
    if text[position] not in "{[":
        return _match(_SCALAR, text, position)
    depth = 0
    for token in _NESTING.finditer(text, position):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise AssertionError("validated JSON has balanced brackets")


def _key_end(text: str, member: _Member) -> int:
    return _match(_KEY, text, member.begins)


def _skip_space(text: str, position: int) -> int:
    return _match(_SPACE, text, position)


def _match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    if match is None:
        raise AssertionError("validated JSON has a token here")
    return match.end()
