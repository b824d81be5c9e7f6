"""Where live output goes."""

from typing import Protocol

from caisson.common.ids import Ids
from caisson.runner.domain.boxes import LiveOutput


class LiveStep(Protocol):
    """The live output of one step. It may be dropped; it never blocks and never grows without bound."""

    @property
    def receive(self) -> LiveOutput:
        """Where the box puts what a command prints."""

    def close(self) -> None:
        """The command has ended."""


class Live(Protocol):
    """Whoever publishes live output."""

    def open(self, ids: Ids) -> LiveStep:
        """Begin with a step: `ids` name it completely."""
