"""What an index remembers of the embedder that wrote it. Invariant: vectors of two embedders never share an index."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from caisson.common.errors import Misconfigured
from caisson.memory.adapters.point_payload import LAYOUT
from caisson.memory.domain.indexing import EmbedderIdentity


def stamp(identity: EmbedderIdentity) -> dict[str, Any]:
    """Return what is stored: the embedder's identity and the layout of our points."""
    return {**asdict(identity), "layout": LAYOUT}


def refuse_other(found: Mapping[str, Any], expected: Mapping[str, Any], *, where: str) -> None:
    """Do nothing for equal stamps.

    Raises:
        Misconfigured: with both of them otherwise.
    """
    if dict(found) != dict(expected):
        raise Misconfigured(
            f"{where} was written by {_told(found)}, and the embedder is {_told(expected)}: "
            "start once with --reembed to embed every memory again, or configure the embedder that wrote it"
        )


def _told(found: Mapping[str, Any]) -> str:
    return (
        f"{found.get('name')} with {found.get('dimensions')} dimensions, digest {str(found.get('digest'))[:16]} "
        f"(layout {found.get('layout')})"
    )
