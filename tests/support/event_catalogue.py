"""What `docs/events.md` says: each event's type and the fields of its data."""

import re
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "events.md"
_SECTION = re.compile(r"^### `([a-z_.]+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\| `([a-z_]+)` \|", re.MULTILINE)
_SAME = re.compile(r"Fields as of `([a-z_.]+)`")


def documented_events() -> dict[str, set[str]]:
    """Return the documented types with their fields."""
    sections = dict(_SECTION.findall(FILE.read_text()))
    fields = {name: set(_FIELD.findall(text)) for name, text in sections.items()}
    for name, text in sections.items():
        if same := _SAME.search(text):
            fields[name] = fields[same[1]]
    return fields
