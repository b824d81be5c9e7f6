"""Reading a script with tree-sitter-bash: one walk, without recursion, in the order of the text.

The parser is C, and slow or greedy on hostile input: call this only in a process that may be killed.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

import tree_sitter
import tree_sitter_bash

from caisson.runner.domain.guards.script import Change, Command, Flow, Script
from caisson.runner.domain.guards.words import MAX_ALTERNATIVES, UNKNOWN, Node, Renderer, Word

_FLOWING: Final = frozenset({"pipeline", "redirected_statement", "heredoc_redirect", "negated_command", "command"})
_ASSIGNING: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=", "**="})


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_bash.language())


def read_script(text: str, environment: Mapping[str, str]) -> Script:
    """Return what a script does, as far as its text tells. `environment` holds the variables that it starts with."""
    source = text.encode(errors="replace")
    tree = tree_sitter.Parser(_language()).parse(source)
    return _Walk(text, source, environment).read(tree.root_node)


class _Walk:
    def __init__(self, text: str, source: bytes, environment: Mapping[str, str]) -> None:
        self._text = text
        self._source = source
        self._variables: dict[str, tuple[str, ...]] = {name: (value,) for name, value in environment.items()}
        self._render = Renderer(source, self._variables)
        self._commands: list[Command] = []
        self._changes: list[Change] = []
        self._loose: list[Word] = []
        self._functions: set[str] = set()

    def read(self, root: Node) -> Script:
        pending: list[tuple[Node, Flow | None]] = [(root, None)]
        while pending:
            node, flow = pending.pop()
            if node.type in _FLOWING:
                flow = flow or Flow()
            self._visit(node, flow)
            pending.extend((child, self._flow_of(child, node, flow)) for child in reversed(node.named_children))
        return Script(
            text=self._text,
            commands=self._commands,
            changes=self._changes,
            loose_words=self._loose,
            functions=self._functions,
            complete=not root.has_error,
        )

    @staticmethod
    def _flow_of(child: Node, parent: Node, flow: Flow | None) -> Flow | None:
        """A heredoc's node also holds what comes after it on its line: only a pipe goes on with the same flow."""
        if parent.type == "heredoc_redirect":
            return (
                flow if child.type in {"pipeline", "file_redirect", "herestring_redirect", "heredoc_body"} else None
            )
        return flow if parent.type in _FLOWING else None

    def _visit(self, node: Node, flow: Flow | None) -> None:
        match node.type:
            case "command" if flow is not None:
                self._command(node, flow)
            case "variable_assignment":
                self._assignment(node)
            case "declaration_command":
                self._declaration(node)
            case "unset_command":
                self._unset(node)
            case "for_statement":
                self._loop(node)
            case "binary_expression" | "unary_expression" | "postfix_expression":
                self._arithmetic(node)
            case "function_definition":
                self._functions.add(self._render.raw(node.child_by_field_name("name")))
            case "heredoc_body" | "herestring_redirect" | "file_redirect":
                self._redirection(node, flow)
            case _:
                pass

    def _command(self, node: Node, flow: Flow) -> None:
        named = node.child_by_field_name("name")
        name = self._render.word(named.named_children[0]).text if named and named.named_children else ""
        arguments = tuple(self._render.word(child) for child in node.children_by_field_name("argument"))
        command = Command(
            name="" if UNKNOWN in name else name.rpartition("/")[2],
            arguments=arguments,
            flow=flow,
            start=node.start_byte,
            end=node.end_byte,
        )
        flow.commands.append(command)
        self._commands.append(command)

    def _assignment(self, node: Node) -> None:
        target = node.child_by_field_name("name")
        name = self._render.raw(target.child_by_field_name("name") or target)
        assigned = node.child_by_field_name("value")
        empty = Word(texts=("",), start=node.end_byte, end=node.end_byte)
        value = self._render.word(assigned) if assigned is not None else empty
        plain = self._source[target.end_byte : target.end_byte + 1] == b"=" and target.type == "variable_name"
        self._change(name, value if plain else None, node)
        if node.parent is None or node.parent.type != "command":
            self._variables[name] = value.texts if plain else (UNKNOWN,)

    def _declaration(self, node: Node) -> None:
        keyword = node.children[0].type
        flags = "".join(self._render.raw(child) for child in node.named_children if child.type == "word")
        for child in node.named_children:
            if child.type == "variable_name" and (keyword == "local" or "-n" in flags or "+x" in flags):
                self._change(self._render.raw(child), None, child)
            elif child.type == "variable_assignment" and "-n" in flags:
                self._change(self._render.raw(child.child_by_field_name("value") or child), None, child)
            elif child.type in {"string", "raw_string", "concatenation"}:
                name, is_set, value = self._render.word(child).text.partition("=")
                if is_set:
                    word = Word(texts=(value,), start=child.start_byte, end=child.end_byte)
                    self._change(name.removesuffix("+"), word, child)

    def _unset(self, node: Node) -> None:
        words = [child for child in node.named_children if child.type == "word"]
        if any(self._render.raw(word).startswith("-") and "f" in self._render.raw(word) for word in words):
            return
        for child in node.named_children:
            self._change(self._render.word(child).text, None, child)

    def _loop(self, node: Node) -> None:
        variable = node.child_by_field_name("variable")
        values = [self._render.word(child) for child in node.children_by_field_name("value")]
        self._loose.extend(values)
        name = self._render.raw(variable)
        texts = tuple(text for word in values for text in word.texts)[:MAX_ALTERNATIVES] or (UNKNOWN,)
        self._change(name, Word(texts=texts, start=node.start_byte, end=variable.end_byte), variable)
        self._variables[name] = texts

    def _arithmetic(self, node: Node) -> None:
        operators = {child.type for child in node.children if not child.is_named}
        if operators & (_ASSIGNING | {"++", "--"}):
            for child in node.named_children[:1]:
                if child.type in {"variable_name", "word"} and node.parent.type != "test_command":
                    self._change(self._render.raw(child), None, node)

    def _redirection(self, node: Node, flow: Flow | None) -> None:
        flow = flow or Flow()
        if node.type == "heredoc_body":
            flow.texts.append(self._render.word(node))
        elif node.type == "herestring_redirect":
            flow.texts.extend(self._render.word(child) for child in node.named_children[-1:])
        else:
            words = [self._render.word(child) for child in node.children_by_field_name("destination")]
            flow.files.extend(words)
            self._loose.extend(words)

    def _change(self, name: str, value: Word | None, node: Node) -> None:
        self._changes.append(Change(name=name, value=value, start=node.start_byte, end=node.end_byte))
