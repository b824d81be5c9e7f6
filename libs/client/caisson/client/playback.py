"""Live output put together exactly: pieces may be missing, repeated, or hold replaced bytes.

Invariant: what is shown of a stream is always a prefix of the bytes that the step wrote.
"""

from dataclasses import dataclass

from caisson.client.models import Output

_REPLACED = "\ufffd"


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything was shown."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What is still to be shown."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """What is still to be shown is not in the result: it is to be read from byte `start` on."""

    start: int


class Playback:
    """One stream of one attempt at a step."""

    def __init__(self) -> None:
        self.shown_bytes = 0
        self._holding = False

    def take(self, offset: int, text: str) -> bytes:
        """Return what may be shown of a live piece. After a gap or a replaced byte, the rest waits for the result."""
        if self._holding or offset > self.shown_bytes:
            self._holding = True
            return b""
        exact, replaced, _ = text.partition(_REPLACED)
        self._holding = bool(replaced)
        fresh = exact.encode(errors="replace")[self.shown_bytes - offset :]
        self.shown_bytes += len(fresh)
        return fresh

    def finish(self, output: Output) -> Complete | Rest | Fetch:
        """Hold what was shown against the step's result."""
        if self.shown_bytes >= output.bytes:
            return Complete()
        if output.truncated or output.lossy:
            return Fetch(self.shown_bytes)
        return Rest(output.text.encode(errors="replace")[self.shown_bytes :])
