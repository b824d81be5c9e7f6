"""What executing a run needs from the host: a room per run, a box per command.

Invariant: whoever holds a room holds the run's only workspace and network namespace; leaving it destroys both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from caisson.common.leases import Limits
from caisson.common.outcome import Outcome, Output

StreamName = Literal["stdout", "stderr"]
LiveOutput = Callable[[StreamName, int, bytes], None]
"""Receives (stream, offset in bytes, data) as a command prints, at most every 50 ms per stream; must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """For whom a room is made: the tenant's uid, the run, the channel to the proxy, and what it may use."""

    uid: int
    run_id: str
    request_id: str
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCommand:
    """One bash command: `environment` is everything that it sees, `timeout_s` ends it."""

    script: str
    environment: dict[str, str]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Packets that the room's kernel rules refused: to where (`address:port/protocol`), and how many."""

    destination: str
    packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxResult:
    """How a command ended, what it printed, how long it ran, and what the network rules refused meanwhile."""

    outcome: Outcome
    stdout: Output
    stderr: Output
    duration_ms: float
    refused: tuple[Refusal, ...]


class Room(Protocol):
    """A run's workspace and network namespace."""

    async def execute(self, command: BoxCommand, live: LiveOutput) -> BoxResult:
        """Run one command in a new box. One that cannot be set up is `not_started`, never less isolation.

        Cancelling the awaiting task kills the box.
        """

    def cancel(self) -> None:
        """Kill the running command, if any: its outcome becomes `cancelled`."""

    async def leave(self) -> None:
        """Kill what still runs and destroy workspace and namespace."""


class Rooms(Protocol):
    """The host's ability to make rooms."""

    async def enter(self, place: Place) -> Room:
        """Make a room.

        Raises:
            Unavailable: a mechanism of the host failed; the reason names it.
        """

    async def check(self) -> None:
        """Raise Unavailable, naming the mechanism, unless rooms can be made on this host."""
