"""The outbox as the relay sees it: events whose publication JetStream has not acknowledged."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from caisson.common.envelope import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """An event to publish, in the trace of its run; the envelope's id is also its message id."""

    seq: int
    envelope: Envelope
    traceparent: str | None

    @property
    def about(self) -> str:
        """The run, or the session itself, whose facts keep their order."""
        return self.envelope.run_id or self.envelope.session_id or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxAge:
    """How far the relay is behind."""

    unsent: int
    oldest_s: float


class Batch(Protocol):
    """Unsent events that no other relay holds."""

    in_order: list[list[Unsent]]

    @property
    def is_full(self) -> bool:
        """Whether there may be more than this."""

    async def mark_sent(self, events: Sequence[Unsent]) -> None:
        """Mark events as published."""


class Outbox(Protocol):
    """The ledger's outbox."""

    def batch(self) -> AbstractAsyncContextManager[Batch]:
        """Hold the next unsent events while they are published."""

    async def age(self) -> OutboxAge:
        """Return how many events are unsent and how old the oldest is."""


class OutboxNews(Protocol):
    """Tells the relay when to look."""

    async def wait(self, *, timeout_s: float) -> None:
        """Return on news since the last call, or after the time."""
