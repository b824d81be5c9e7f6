"""Each event that the code can tell is in `docs/events.md`, and nothing else is."""

import re
from pathlib import Path

from caisson.common.leases import SecurityKind
from tests.support.event_catalogue import documented_events

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / "services" / "gateway" / "caisson").rglob("*.py"),
    *(ROOT / "services" / "gateway" / "caisson").rglob("*.sql"),
    *(ROOT / "services" / "memory" / "caisson").rglob("*.py"),
    *(ROOT / "services" / "memory" / "caisson").rglob("*.sql"),
    *(ROOT / "libs" / "common" / "caisson").rglob("*.py"),
]


def test_the_catalogue_holds_the_events_of_the_code() -> None:
    written = {
        name
        for source in SOURCES
        for name in re.findall(r"""["']((?:run|step|session|memory)\.[a-z]+)["']""", source.read_text())
    }
    assert len(written) > 6
    assert set(documented_events()) == written | {f"security.{kind}" for kind in SecurityKind}
