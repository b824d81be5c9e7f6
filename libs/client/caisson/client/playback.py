"""Live output put together exactly: pieces may be missing, repeated, or hold replaced bytes.

Invariant: what is shown live is a prefix of the bytes that the step wrote, and the result's text completes it.
"""

from dataclasses import dataclass

from caisson.client.models import Output

_REPLACED = "\ufffd"


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything was shown."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What is still to be shown of what the result keeps. With `gap`, bytes before it or within it are lost."""

    data: bytes
    gap: bool = False


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
        fresh = _bytes(exact)[self.shown_bytes - offset :]
        self.shown_bytes += len(fresh)
        return fresh

    def finish(self, output: Output) -> Complete | Rest:
        """Hold what was shown against the step's result."""
        if self.shown_bytes >= output.bytes:
            return Complete()
        if not output.truncated:
            return Rest(_bytes(output.text)[self.shown_bytes :])
        head, tail = _bytes(output.text[: output.gap_at]), _bytes(output.text[output.gap_at or 0 :])
        already = max(0, self.shown_bytes - (output.bytes - len(tail)))
        return Rest(head[self.shown_bytes :] + tail[already:], gap=True)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")
