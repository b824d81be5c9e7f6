"""YAML with the line of every value, so that an error can say where it is.

Invariant: a key stands once in its mapping; YAML's habit of letting the last one win is refused.
"""

from typing import Any

import yaml

Location = tuple[int | str, ...]


class YamlInvalid(ValueError):
    """The text is not usable YAML. `line` counts from 1."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


class LineMap(dict[Location, int]):
    """The line of each value, by its path."""

    def nearest(self, location: Location) -> int:
        """Return the line of a value, or of the innermost thing that should have held it."""
        while location and location not in self:
            location = location[:-1]
        return self.get(location, 1)


def read_yaml(text: str) -> tuple[Any, LineMap]:
    """Read a document of mappings, sequences and scalars.

    Raises:
        YamlInvalid: with the line.
    """
    lines = LineMap()
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        return (None if node is None else _build(loader, node, (), lines)), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlInvalid(str(error.problem or error.context), line=mark.line + 1 if mark else 1) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlInvalid("not YAML", line=1) from error
    finally:
        loader.dispose()


def _build(loader: yaml.SafeLoader, node: yaml.Node, location: Location, lines: LineMap) -> Any:
    lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, (*location, index), lines) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(loader, node, location, lines)
    return loader.construct_object(node)


def _build_mapping(
    loader: yaml.SafeLoader, node: yaml.MappingNode, location: Location, lines: LineMap
) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise YamlInvalid("a key must be plain text", line=line)
        if key in built:
            raise YamlInvalid(f"the key {key!r} stands twice", line=line)
        lines[(*location, key)] = line
        built[key] = _build(loader, value_node, (*location, key), lines)
    return built
