"""What a guard decides, and the trusted facts that it decides by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Allowed:
    """The command may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The command must not run. `reason` tells a model what to do instead; `snippet` holds no credential."""

    guard: str
    reason: str
    snippet: str


Decision = Allowed | Blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """What is true about the run whatever its commands say, and the folders of the runner itself (`hidden`)."""

    tenant_id: str
    datasets: tuple[str, ...]
    environment: Mapping[str, str]
    hidden: tuple[str, ...] = ()


class Guards(Protocol):
    """Whoever reads commands."""

    async def check(self) -> None:
        """Raise Unavailable unless commands can be read."""

    async def inspect(self, command: str, trusted: Trusted) -> Decision:
        """Read a command in bounded time. What cannot be parsed is read as raw text.

        Raises:
            Unavailable: it could not be read at all, so it must not run.
        """
