"""Words of a command as the shell would expand them, as far as that is known without running anything.

Invariant: what is not known is `UNKNOWN` in the text, so a value that holds it is never taken for a literal.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Node = Any
"""A tree-sitter node; the library's own type is not needed to read one."""

UNKNOWN: Final = "\x00"
MAX_ALTERNATIVES: Final = 8

_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\([$`"\\])|\\\n')
_ANSI_C: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_DEFAULTING: Final = frozenset({":-", "-", ":=", "=", ":?", "?"})
_MAX_CODE_POINT: Final = 0x10FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word: its possible texts, and where it stands in the script."""

    texts: tuple[str, ...]
    start: int
    end: int

    @property
    def text(self) -> str:
        """The first possible text."""
        return self.texts[0]


class Renderer:
    """Expands words with the variables known so far."""

    def __init__(self, source: bytes, variables: Mapping[str, tuple[str, ...]]) -> None:
        self._source = source
        self._variables = variables

    def word(self, node: Node) -> Word:
        """Return a node as one word; an array's elements become its possible texts."""
        if node.type == "array":
            texts = tuple(self._text(child, 0) for child in node.named_children[:MAX_ALTERNATIVES]) or ("",)
        else:
            count = min(MAX_ALTERNATIVES, max((len(values) for values in self._values(node)), default=1))
            texts = tuple(dict.fromkeys(self._text(node, turn) for turn in range(max(1, count))))
        return Word(texts=texts, start=node.start_byte, end=node.end_byte)

    def raw(self, node: Node) -> str:
        """Return a node's source text."""
        return self._source[node.start_byte : node.end_byte].decode(errors="replace")

    def _values(self, node: Node) -> Iterator[tuple[str, ...]]:
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type in {"simple_expansion", "expansion"}:
                yield self._variables.get(self._name(current), ())
            elif current.type in {"string", "concatenation", "heredoc_body", "translated_string"}:
                pending.extend(current.named_children)

    def _text(self, node: Node, turn: int) -> str:
        match node.type:
            case "word" | "number" | "variable_name" | "extglob_pattern" | "regex" | "test_operator":
                return _ESCAPED.sub(lambda found: found[1] if found[1] != "\n" else "", self.raw(node))
            case "raw_string":
                return self.raw(node)[1:-1]
            case "ansi_c_string":
                return _ANSI_C.sub(_ansi_c, self.raw(node)[2:-1])
            case "string":
                return self._joined(node, turn, node.start_byte + 1, node.end_byte - 1)
            case "translated_string" | "concatenation":
                return "".join(self._text(child, turn) for child in node.named_children)
            case "heredoc_body":
                return self._joined(node, turn, node.start_byte, node.end_byte)
            case "simple_expansion" | "expansion":
                return self._expansion(node, turn)
            case _:
                return UNKNOWN

    def _joined(self, node: Node, turn: int, start: int, end: int) -> str:
        """Return quoted text: expansions replaced, everything between them as it stands."""
        parts: list[str] = []
        position = start
        for child in node.named_children:
            if child.type in {"string_content", "heredoc_content"}:
                continue
            parts.append(self._between(position, child.start_byte))
            parts.append(self._text(child, turn))
            position = child.end_byte
        parts.append(self._between(position, end))
        return "".join(parts)

    def _between(self, start: int, end: int) -> str:
        text = self._source[start:end].decode(errors="replace")
        return _ESCAPED_IN_QUOTES.sub(lambda found: found[1] or "", text)

    def _name(self, node: Node) -> str:
        for child in node.named_children[:1]:
            return self.raw(child.child_by_field_name("name") or child)
        return ""

    def _expansion(self, node: Node, turn: int) -> str:
        """Return the value of `$NAME`, `${NAME}`, `${NAME[@]}` or `${NAME:-literal}`; anything else is unknown."""
        values = self._variables.get(self._name(node), ())
        operators = [child.type for child in node.children if not child.is_named][1:-1]
        if node.type == "simple_expansion" or not operators:
            return values[turn % len(values)] if values else UNKNOWN
        if len(operators) != 1 or operators[0] not in _DEFAULTING:
            return UNKNOWN
        if values:
            return values[turn % len(values)]
        default = node.named_children[1:]
        literal = (
            len(default) == 1 and default[0].type in {"word", "number", "raw_string"} and "?" not in operators[0]
        )
        return self._text(default[0], turn) if literal else UNKNOWN


def _ansi_c(found: "re.Match[str]") -> str:
    for digits, radix in ((found[1], 16), (found[2], 16), (found[3], 16), (found[4], 8)):
        if digits:
            return chr(min(int(digits, radix), _MAX_CODE_POINT))
    return _LETTERS.get(found[5], found[5])
